"""The schedule of faults: a seed and a length in, what happens when out. Pure, so a seed can be repeated."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

LEASE_SECONDS: Final = 2.0

QUIET_START_SECONDS: Final = 3.0
"""The crew has started and has work in hand before the first fault comes."""

GAP_SECONDS_MEAN: Final = 2.2
SUBJECTS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault: its lane in the timeline, how often it is drawn, how long it lasts."""

    lane: str
    weight: float
    lasts: tuple[float, float] = (0.0, 0.0)
    says: str = ""


_L: Final = LEASE_SECONDS
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "kill": Kind("processes", 5, says="SIGKILL to a worker"),
        "kill-group": Kind("processes", 2, says="SIGKILL to a worker, its pacemaker and its children"),
        "kill-pacemaker": Kind("processes", 2, says="SIGKILL to a pacemaker"),
        "kill-process": Kind("processes", 2, says="SIGKILL to one process of a supervised group"),
        "kill-child": Kind("processes", 2, says='SIGKILL to a child that runs a run="process" handler'),
        "terminate": Kind("processes", 2, says="SIGTERM to a worker"),
        "freeze": Kind("processes", 4, (1.5 * _L, 2.5 * _L), "SIGSTOP to a worker and its pacemaker"),
        "freeze-worker": Kind("processes", 3, (1.5 * _L, 2.5 * _L), "SIGSTOP to a worker alone"),
        "trap": Kind(
            "processes", 1, (1.5 * _L, 4 * _L), "frozen as it sends its commit, until another has the job"
        ),
        "kill-producers": Kind("processes", 1, says="SIGKILL to the producers"),
        "backends": Kind("server", 4, says="pg_terminate_backend"),
        "restart-immediate": Kind("server", 1, (0.1, 1.0), "server stopped at once, started again"),
        "restart-fast": Kind("server", 1, (0.5, 1.2 * _L), "server shut down, started again"),
        "lock": Kind("server", 2, (0.5 * _L, 1.5 * _L), "ACCESS EXCLUSIVE lock on active"),
        "old-transaction": Kind("server", 1, (6.0, 20.0), "a transaction that pins the horizon"),
        "disk-full": Kind("server", 1.5, (1.0, 1.5 * _L), "no space left on the data's file system"),
        "clock-step": Kind("server", 1.5, (2.0, 8.0), "the server's clock jumps, and jumps back"),
        "cut": Kind("network", 4, says="connections cut"),
        "half-open-near": Kind("network", 2, (_L, 2 * _L), "the server has gone, the worker is not told"),
        "half-open-far": Kind("network", 2, (_L, 2 * _L), "the worker has gone, the server is not told"),
        "deaf": Kind("network", 2, (0.5 * _L, 2 * _L), "replies do not come"),
        "mute": Kind("network", 2, (0.5 * _L, 2 * _L), "requests do not arrive"),
        "silent": Kind("network", 2, (_L, 2.5 * _L), "nothing passes, either way, and then all of it"),
        "delay": Kind("network", 2, (2.0, 8.0), "a slow line"),
        "flap": Kind("network", 1, (4.0, 8.0), "the line comes and goes"),
        "lost-commit": Kind("replies", 3, (0.0, 10.0), "COMMIT carried out, its reply lost"),
        "lost-reply": Kind("replies", 5, (0.0, 10.0), "a call carried out, its reply lost"),
        "cut-before": Kind("replies", 2, (0.0, 10.0), "cut before a call arrives"),
    }
)

# Once in each minute at a moment drawn from the seed: a run without these shows little.
EVERY_MINUTE: Final = ("trap", "lost-commit", "freeze", "kill", "restart-immediate", "lost-reply")
# Once in each run, where it can be done at all: else a short run might never draw them.
EVERY_RUN: Final = ("disk-full", "clock-step", "lock", "restart-fast", "backends", "cut")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: what, when, for how long, to whom (a number, cut down to the crew)."""

    number: int
    at: float
    kind: str
    lasts: float
    subject: int
    chance: float
    """A number from 0 to 1 for whatever else the fault has to choose."""
    planned: bool = False
    """Whether the run needs it: then it is tried again when it could not be done."""

    @property
    def lane(self) -> str:
        return KINDS[self.kind].lane


def draw(seed: int, minutes: float, without: Iterable[str] = ()) -> tuple[Fault, ...]:
    """The faults of one run, in the order of their moments."""
    chance = random.Random(f"nemesis-{seed}")
    length = minutes * 60
    kinds = {name: kind.weight for name, kind in KINDS.items() if name not in set(without)}
    moments = [(at, name, False) for at, name in _random(chance, length, kinds)]
    moments += [(at, name, True) for at, name in _planned(chance, length, kinds)]
    return tuple(
        Fault(
            number=number, at=round(at, 3), kind=name, lasts=round(chance.uniform(*KINDS[name].lasts), 3),
            subject=chance.randrange(SUBJECTS_MAX), chance=chance.random(), planned=planned,
        )
        for number, (at, name, planned) in enumerate(sorted(moments), start=1)
    )  # fmt: skip


def _random(chance: random.Random, length: float, kinds: Mapping[str, float]) -> list[tuple[float, str]]:
    """Faults at random distances: sometimes two at once, sometimes a pause."""
    found, at = [], QUIET_START_SECONDS
    while (at := at + chance.expovariate(1 / GAP_SECONDS_MEAN)) < length:
        found.append((at, chance.choices(list(kinds), list(kinds.values()))[0]))
    return found


def _planned(chance: random.Random, length: float, kinds: Mapping[str, float]) -> list[tuple[float, str]]:
    start, minute = QUIET_START_SECONDS, 60.0
    found = [(chance.uniform(start, max(start, length * 0.8)), name) for name in EVERY_RUN if name in kinds]
    while start < length:
        # Early in its minute: a trap needs two leases, and must be over when the minute is.
        end = min(start + minute * 0.75, max(start, length * 0.75))
        found += [(chance.uniform(start, end), name) for name in EVERY_MINUTE if name in kinds]
        start += minute
    return found
