"""Pauses that grow with each failure in a row, so that a broken process does not use up a CPU."""

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """The wait before the next try: twice as long each time, up to a bound, with jitter.

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
        """Reset after a success: the next failure is the first again."""
        self._next = 0.0
