"""Where lanes begin, as this worker knows it from its own claims.

A floor is raised once in some thousand places. While a transaction keeps dead rows from being cleared, each
claim would walk over all that died since; what this worker itself has claimed, it can step over.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from faultline.store.call import Row

LATE_SECONDS: Final = 0.25
"""What was passed less long ago is looked at again: somebody may commit behind us."""

LOOK_SECONDS: Final = 0.1
"""The longest that nobody looks from the floor: for those who commit later than that."""

LANES_MAX: Final = 32


class Memory:
    """How far each lane was claimed, a moment ago."""

    def __init__(self) -> None:
        self._begins: dict[int, int] = {}
        self._passed: deque[tuple[float, dict[int, int]]] = deque()
        self._looked_at = 0.0
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
        while self._passed and self._passed[0][0] < now - LATE_SECONDS:
            self._begins.update(self._passed.popleft()[1])
        return self._begins if now < self.look_at and len(self._begins) <= LANES_MAX else {}

    def begin(self, begins: Mapping[int, int]) -> None:
        """A claim is sent that begins there."""
        self.stepped_over = bool(begins)
        if not begins:
            self._looked_at = time.monotonic()

    @property
    def look_at(self) -> float:
        """When to look from the floor again."""
        return self._looked_at + LOOK_SECONDS

    def took(self, rows: list[Row]) -> None:
        """A claim gave these: in each lane everything up to them was taken, by us or by others."""
        passed: dict[int, int] = {}
        for row in rows:
            passed[row[13]] = max(row[14] + 1, passed.get(row[13], 0))
        self._passed.append((time.monotonic(), passed))
