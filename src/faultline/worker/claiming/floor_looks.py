"""FloorLooks: how often a claim begins at the floor, and from which place on it begins otherwise.

Behind the floor may stand jobs of other apps, which only they claim. A look from the floor walks over all of
them. Claims between two looks begin where such a look has found nothing of ours, in every lane.
"""

import time
from typing import Final

FLOOR_SECONDS: Final = 1.0
"""The time between two looks from the floor."""

SHARE: Final = 50
"""Looks that take long are made less often: at most one fiftieth of the time is spent on them."""

FLOOR_SECONDS_MAX: Final = 15.0

SLOW_SECONDS: Final = 0.005
"""A look that found little and took so long has walked over jobs of other apps, or over dead rows."""

SETTLED_SECONDS: Final = 0.6
"""The age at which a place counts: a job that drew an earlier one has committed by then, or commits late."""


class FloorLooks:
    """The place behind which nothing of ours stands, by two observations as far apart as late commits."""

    def __init__(self) -> None:
        self.start: int | None = None
        """The place from which claims may begin, in every lane."""
        self.wants_mark = False
        """It is time to ask for the newest place of all."""
        self._mark: int | None = None
        self._marked_at = 0.0
        self._answer_seconds = 0.0
        """How long the shortest question takes: it is no part of the walk."""
        self._seconds = FLOOR_SECONDS

    @property
    def seconds(self) -> float:
        """The time from one look to the next."""
        return SETTLED_SECONDS if self._mark is not None and self.start is None else self._seconds

    def mark(self, place: int | None, asked_at: float) -> None:
        """The newest place when it was asked for; None from a server that does not tell it."""
        self.wants_mark = False
        self._mark, self._marked_at = place, time.monotonic()
        self._answer_seconds = self._marked_at - asked_at

    def looked(self, sent: float, *, is_full: bool) -> None:
        """A look from the floor that was sent then has been answered."""
        walk = time.monotonic() - sent - self._answer_seconds
        self._seconds = min(max(FLOOR_SECONDS, walk * SHARE), FLOOR_SECONDS_MAX)
        if is_full:  # it ended before the newest place, so it says nothing of that
            return
        if walk < SLOW_SECONDS:
            self.start = self._mark = None
        elif self._mark is None:
            self.wants_mark = True
        elif sent >= self._marked_at + SETTLED_SECONDS:
            self.start, self._mark = self._mark, None
            self.wants_mark = True
