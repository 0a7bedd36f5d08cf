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
from faultline.store.rows import AT
from faultline.worker.claiming.floor_looks import FloorLooks

LATE_SECONDS: Final = 0.1
"""What was passed less long ago is looked at again by each claim: another producer may commit behind it.

Not while claims come back full: there is more than we can take, and all that is running would be walked over.
"""

LOOK_SECONDS: Final = 0.1
"""How often we look at more than that."""

LATER_SECONDS: Final = 0.5 + LOOK_SECONDS
"""Every look covers the places passed within this time, so it finds jobs that commit within half a second."""

LANES_MAX: Final = 32

CLAIMS_OF_ONE_LANE: Final = 4
"""After so many a lane is taken for the only one that has jobs, until others come."""

FLOOR: Final[Mapping[int, int]] = {}
"""Where a claim begins that steps over nothing."""


EVERY_LANE: Final = 0
"""The number of no lane: a beginning for all of them."""

_LANE_AND_PLACE: Final = itemgetter(AT.lane, AT.pos)


class ClaimedUpTo(NamedTuple):
    """How far the lanes were claimed at some moment."""

    at: float
    begins: dict[int, int]


class LaneCursors:
    """How far each lane was claimed, a moment ago."""

    def __init__(self) -> None:
        self._near: dict[int, int] = {}
        self._far: dict[int, int] = {}
        self._late: deque[ClaimedUpTo] = deque()
        self._later: deque[ClaimedUpTo] = deque()
        self._last: dict[int, int] = {}
        self._only: int | None = None
        """The lane that all jobs of the last claim were of, where it was one."""
        self._claims_of_it = 0
        self._is_full = False
        """As many came as were asked for: there are more than we can take, and looking back can wait."""
        self.floor_looks = FloorLooks()
        self._looked_at = self._floor_at = 0.0
        self._is_fed = False
        """Something came since the last look."""
        self.stepped_over = False
        """True when the last claim did not begin at the floor."""

    def begins(self) -> Mapping[int, int]:
        """Where to begin, or nothing when it is time to look from the floor."""
        begins = self.would_begin(coming=0)
        self.begin(begins)
        return begins

    def would_begin(self, coming: int | None = None) -> Mapping[int, int]:
        """The same for a claim that may not be sent: nothing is looked at by it.

        So many jobs are coming, by claims that it will be sent behind; None when it is to lie ready.
        """
        now = time.monotonic()
        while self._late and self._late[0].at < now - LATE_SECONDS:
            self._near.update(self._late[0].begins)
            self._later.append(self._late.popleft())
        while self._later and self._later[0].at < now - LATER_SECONDS:
            self._far.update(self._later.popleft().begins)
        if now < self.look_at and len(self._last) <= LANES_MAX:
            return self._near if coming is None or not self._is_full else self._behind(coming)
        # A busy worker looks less far most of the time; an idle one has the time to look at everything.
        is_enough = (self._is_fed or EVERY_LANE in self._far) and now < self._floor_due_at
        return self._far if is_enough and len(self._far) <= LANES_MAX else {}

    def _behind(self, coming: int) -> Mapping[int, int]:
        """Where the last one ended; of one lane, those under way come so many places further, at least.

        They take all that is free there, unless jobs of another lane, or earlier ones, come first: `took`
        finds that out. A copy: it tells then where this one began.
        """
        if not coming or self._only is None or self._claims_of_it < CLAIMS_OF_ONE_LANE:
            return dict(self._last)
        return {**self._last, self._only: self._last[self._only] + coming}

    def is_overtaken(self, begins: Mapping[int, int]) -> bool:
        """Whether one that was put down to begin there is too old: it is time to look further back."""
        now = time.monotonic()
        if begins and begins is self._near:
            return now >= self.look_at
        return bool(begins) and now >= self._floor_due_at

    def begin(self, begins: Mapping[int, int]) -> None:
        """A claim is sent that begins there."""
        self.stepped_over = bool(begins)
        if begins and begins is not self._far:
            return
        self._looked_at, self._is_fed = time.monotonic(), False
        if not begins:
            self._floor_at = self._looked_at

    @property
    def look_at(self) -> float:
        """When to look again."""
        if EVERY_LANE in self._near and not self._is_fed:
            return self._floor_due_at
        return min(self._looked_at + LOOK_SECONDS, self._floor_due_at)

    @property
    def _floor_due_at(self) -> float:
        return self._floor_at + self.floor_looks.seconds

    def looked(self, sent: float, *, is_full: bool) -> None:
        """A claim that began at the floor of each lane, and was sent then, has been answered."""
        self.floor_looks.looked(sent, is_full=is_full)
        for begins in (self._near, self._far, self._last):
            if self.floor_looks.start is None:
                begins.pop(EVERY_LANE, None)
            else:
                begins[EVERY_LANE] = self.floor_looks.start

    def took(self, rows: list[Row], *, is_full: bool = False, begins: Mapping[int, int] = FLOOR) -> None:
        """A claim that began there gave these, in their line: in each lane all up to its last was taken."""
        self._is_full = is_full
        if not rows:
            return
        passed = {lane: place + 1 for lane, place in dict(map(_LANE_AND_PLACE, rows)).items()}
        only = next(iter(passed)) if len(passed) == 1 else None
        for lane in self._begun_too_far(passed, begins):
            del passed[lane]  # the next one begins where those before it have ended, without a guess
            only = None
        self._claims_of_it = self._claims_of_it + 1 if only == self._only else 1
        self._only = only
        self._is_fed = True
        self._last.update(passed)
        self._late.append(ClaimedUpTo(time.monotonic(), passed))

    def _begun_too_far(self, passed: Mapping[int, int], begins: Mapping[int, int]) -> list[int]:
        """The lanes in which it began further than those before it came: what lies between may be free."""
        if begins is self._near or begins is self._far:
            return []
        return [lane for lane in passed if begins.get(lane, 0) > self._last.get(lane, 0)]
