"""Where lanes begin, as this worker knows it from its own claims.

A floor is raised once in some thousand places. While a transaction keeps dead rows from being cleared, each
claim would walk over all that died since; what this worker itself has claimed, it can step over.
"""

import time
from collections import deque
from collections.abc import Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from faultline.store.call import Row
from faultline.store.rows import LANE, PLACE

LATE_SECONDS: Final = 0.1
"""What was passed less long ago is looked at again, by each claim: somebody may commit behind us."""

LATE_JOBS: Final = 1000
LATE_SECONDS_LEAST: Final = 0.02
"""Of a worker that takes this many jobs in less time, only what it passed less long ago than this: at 70,000
jobs a second each claim of 500 walked over 7,000 that were claimed already."""

LOOK_SECONDS: Final = 0.1
"""How often we look at more than that."""

LATER_SECONDS: Final = 0.5 + LOOK_SECONDS
"""What was passed less long ago is looked at by each look: those who commit within half a second meet one."""

FLOOR_SECONDS: Final = 1.0
"""The longest that nobody looks from the floor, at all there is."""

LANES_MAX: Final = 32


_LANE_AND_PLACE: Final = itemgetter(LANE, PLACE)


class Passed(NamedTuple):
    """How far the lanes were claimed at some moment."""

    at: float
    jobs: int
    """How many had come by then."""
    begins: dict[int, int]


class Memory:
    """How far each lane was claimed, a moment ago."""

    def __init__(self) -> None:
        self._near: dict[int, int] = {}
        self._far: dict[int, int] = {}
        self._late: deque[Passed] = deque()
        self._later: deque[Passed] = deque()
        self._jobs = 0
        self._looked_at = self._floor_at = 0.0
        self._is_fed = False
        """Something came since the last claim was sent."""
        self.stepped_over = False
        """True when the last claim did not begin at the floor."""

    def begins(self) -> Mapping[int, int]:
        """Where to begin, or nothing when it is time to look from the floor."""
        begins = self.would_begin()
        self.begin(begins)
        return begins

    def would_begin(self) -> Mapping[int, int]:
        """The same for a claim that may not be sent: nothing is looked at by it."""
        now = time.monotonic()
        while self._late and self._is_passed(self._late[0], now):
            self._near.update(self._late[0].begins)
            self._later.append(self._late.popleft())
        while self._later and self._later[0].at < now - LATER_SECONDS:
            self._far.update(self._later.popleft().begins)
        if now < self.look_at and len(self._near) <= LANES_MAX:
            return self._near
        # Who has work looks less far most of the time; who has none has the time to look at everything.
        is_enough = self._is_fed and now < self._floor_at + FLOOR_SECONDS
        return self._far if is_enough and len(self._far) <= LANES_MAX else {}

    def _is_passed(self, passed: Passed, now: float) -> bool:
        """Whether each claim may step over it."""
        is_many = self._jobs - passed.jobs >= LATE_JOBS
        return passed.at < now - (LATE_SECONDS_LEAST if is_many else LATE_SECONDS)

    def is_overtaken(self, begins: Mapping[int, int]) -> bool:
        """Whether one that was put down to begin there is too old: it is time to look further back."""
        now = time.monotonic()
        if begins and begins is self._near:
            return now >= self.look_at
        return bool(begins) and now >= self._floor_at + FLOOR_SECONDS

    def begin(self, begins: Mapping[int, int]) -> None:
        """A claim is sent that begins there."""
        self.stepped_over, self._is_fed = bool(begins), False
        if begins is not self._near:
            self._looked_at = time.monotonic()
        if not begins:
            self._looked_at = self._floor_at = time.monotonic()

    @property
    def look_at(self) -> float:
        """When to look again."""
        return min(self._looked_at + LOOK_SECONDS, self._floor_at + FLOOR_SECONDS)

    def took(self, rows: list[Row]) -> None:
        """A claim gave these, in their line: in each lane all up to its last was taken, by whomever."""
        last = dict(map(_LANE_AND_PLACE, rows))
        self._is_fed = True
        self._jobs += len(rows)
        begins = {lane: place + 1 for lane, place in last.items()}
        self._late.append(Passed(time.monotonic(), self._jobs, begins))
