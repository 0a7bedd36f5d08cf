"""Pauses that grow with each trouble in a row, so that something that cannot work does not burn a core."""

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """How long to wait before the next try: twice as long each time, up to a bound, with jitter.

    >>> pauses = Backoff(first=0.1, longest=5.0)
    >>> [0.05 <= pauses() <= 0.1, 0.1 <= pauses() <= 0.2]
    [True, True]
    """

    first: float
    longest: float
    _next: float = 0.0

    def __call__(self) -> float:
        pause = min(max(self._next, self.first), self.longest)
        self._next = pause * 2
        return pause * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It worked: the next trouble is the first again."""
        self._next = 0.0
