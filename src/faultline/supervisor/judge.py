"""A worker process has ended: is the group's work over, is it started again, or is there no point?"""

import signal
from dataclasses import dataclass
from typing import Final

from faultline.errors import FaultlineError, WorkersKeepDying
from faultline.store.line import OUTAGE
from faultline.supervisor.words import Failure

STARTS_MAX: Final = 5
"""So many starts in a row that came to nothing, in the whole group, and the supervisor gives up."""


@dataclass(frozen=True, slots=True)
class End:
    """How a worker process ended."""

    code: int
    """As `subprocess` has it: an exit code, or a signal's number below zero."""
    was_ready: bool
    failure: Failure | None = None

    def facts(self) -> dict[str, object]:
        """For a log line: its exit code, or the name of the signal that killed it."""
        if self.code >= 0:
            return {"code": self.code}
        try:
            return {"signal": signal.Signals(-self.code).name}
        except ValueError:
            return {"signal": -self.code}


@dataclass(frozen=True, slots=True)
class Group:
    """What has to be known of the others to judge one's end."""

    stopping: bool
    until_empty: bool
    ever_ready: bool
    starts_failed: int
    """In a row, this one included if it is one."""


class Again:
    """Start another in its place."""


@dataclass(frozen=True, slots=True)
class Over:
    """Its place stays empty; this is the exit code that counts."""

    code: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Another would end as this one did."""

    error: FaultlineError


def judge(end: End, group: Group) -> Again | Over | GiveUp:
    """Decide what follows from a worker's end."""
    if group.stopping:
        return Over(_shown(end))
    if end.was_ready:
        ended_by_itself = group.until_empty and end.failure is None and end.code in (0, 1)
        return Over(end.code) if ended_by_itself else Again()
    error = None if end.failure is None else end.failure.error()
    if error is not None and not group.ever_ready:
        return GiveUp(error)  # as a worker alone would: it says what is wrong, and ends
    if isinstance(error, OUTAGE):
        return Again()  # the others wait for the database, and so do we
    if group.starts_failed >= STARTS_MAX:
        return GiveUp(error or _keeps_dying(end))
    return Again()


def _shown(end: End) -> int:
    """As a shell shows it; one that was ended before it had begun has nothing to answer for."""
    if not end.was_ready:
        return 0
    return end.code if end.code >= 0 else 128 - end.code


def _keeps_dying(end: End) -> WorkersKeepDying:
    how = ", ".join(f"{fact} {value}" for fact, value in end.facts().items())
    return WorkersKeepDying(
        f"worker processes end before they are ready, {STARTS_MAX} in a row, the last with {how}; "
        "run one alone, without --processes, to see why"
    )
