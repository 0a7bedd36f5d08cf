"""The decision after the end of a worker process: the work is over, start it again, or give up."""

import signal
from dataclasses import dataclass
from typing import Final

from faultline.errors import FaultlineError, WorkersKeepDying
from faultline.store.session import OUTAGE
from faultline.supervisor.messages import ProcessFailure

STARTS_MAX: Final = 5
"""The number of failed starts in a row, in the whole group, after which the supervisor gives up."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a worker process ended."""

    code: int
    """As in `subprocess`: an exit code, or a signal's number below zero."""
    was_ready: bool
    failure: ProcessFailure | None = None

    def facts(self) -> dict[str, object]:
        """For a log line: its exit code, or the name of the signal that killed it."""
        if self.code >= 0:
            return {"code": self.code}
        try:
            return {"signal": signal.Signals(-self.code).name}
        except ValueError:
            return {"signal": -self.code}


@dataclass(frozen=True, slots=True)
class GroupState:
    """The state of the other processes that the decision needs."""

    stopping: bool
    until_empty: bool
    ever_ready: bool
    starts_failed: int
    """In a row, this one included if it failed."""


class RestartProcess:
    """Start another in its place."""


@dataclass(frozen=True, slots=True)
class GroupFinished:
    """Its place stays empty; this is its exit code."""

    code: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Another process would end in the same way."""

    error: FaultlineError


def next_step(end: ProcessEnd, group: GroupState) -> RestartProcess | GroupFinished | GiveUp:
    """Decide the next step after a worker's end."""
    if group.stopping:
        return GroupFinished(_shown(end))
    if end.was_ready:
        ended_by_itself = group.until_empty and end.failure is None and end.code in (0, 1)
        return GroupFinished(end.code) if ended_by_itself else RestartProcess()
    error = None if end.failure is None else end.failure.error()
    if error is not None and not group.ever_ready:
        return GiveUp(error)  # the same as a worker alone: it reports the error, and ends
    if isinstance(error, OUTAGE):
        return RestartProcess()  # the others wait for the database, and so does the group
    if group.starts_failed >= STARTS_MAX:
        return GiveUp(error or _keeps_dying(end))
    return RestartProcess()


def _shown(end: ProcessEnd) -> int:
    """The exit code as a shell shows it; 0 for a process that ended before it had begun."""
    if not end.was_ready:
        return 0
    return end.code if end.code >= 0 else 128 - end.code


def _keeps_dying(end: ProcessEnd) -> WorkersKeepDying:
    how = ", ".join(f"{fact} {value}" for fact, value in end.facts().items())
    return WorkersKeepDying(
        f"worker processes end before they are ready, {STARTS_MAX} in a row, the last with {how}; "
        "run one alone, without --processes, to see why"
    )
