"""The rate of log lines about one subject."""

import time


class RateLimited:
    """Whether a line may be logged: one in so many seconds about each subject.

    >>> seldom = RateLimited(60.0)
    >>> [seldom.allows("a"), seldom.allows("a"), seldom.allows("b")]
    [True, False, True]
    """

    def __init__(self, seconds: float, most: int = 1000) -> None:
        self._seconds = seconds
        self._most = most
        self._said: dict[str, float] = {}

    def allows(self, subject: str) -> bool:
        now = time.monotonic()
        if now - self._said.get(subject, -self._seconds) < self._seconds:
            return False
        if len(self._said) >= self._most:
            self._said.clear()
        self._said[subject] = now
        return True
