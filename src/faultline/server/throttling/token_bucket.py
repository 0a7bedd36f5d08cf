"""TokenBucket: a bounded rate for each name."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

NAMES_MAX: Final = 10_000
"""The number of names kept; past it the name that was not seen for longest goes."""


class TokenBucket:
    """Allows each name this many a second, and a second's worth at once.

    >>> moments = iter([0.0, 0.0, 0.0, 1.0])
    >>> rate = TokenBucket(2.0, clock=lambda: next(moments))
    >>> [rate.take("shop") for _ in range(4)]
    [True, True, False, True]
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> bool:
        """Whether this one may pass; if so, it counts."""
        return self._draw(name, 1.0)

    def has(self, name: str) -> bool:
        """Whether one more may pass; does not count."""
        return self._draw(name, 0.0)

    def _draw(self, name: str, price: float) -> bool:
        now = self._clock()
        left, since = self._left.get(name, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        if left < 1.0:
            return False
        if price:
            self._left[name] = (left - price, now)
            self._left.move_to_end(name)
            if len(self._left) > NAMES_MAX:
                self._left.popitem(last=False)
        return True
