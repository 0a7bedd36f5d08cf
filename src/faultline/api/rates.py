"""How many calls a key may make: so many a second, so many at once. Bounded, whatever comes."""

from collections.abc import Iterator
from contextlib import contextmanager

from faultline.api.problems import OVERLOADED, TOO_MANY, Refused
from faultline.server.limits import Limits
from faultline.server.rates import Rate


class Turnstile:
    """Counts calls in hand, for all and for each caller."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rate = Rate(limits.calls_per_second_per_key)
        self._in_hand: dict[str, int] = {}
        self.calls = 0

    @contextmanager
    def passing(self, name: str) -> Iterator[None]:
        """Let a call through for as long as it takes, or refuse it with how long to wait."""
        if not self._rate.take(name):
            raise Refused(TOO_MANY, f"more than {self._limits.calls_per_second_per_key:g} a second", 1)
        if self._in_hand.get(name, 0) >= self._limits.calls_at_once_per_key:
            raise Refused(TOO_MANY, f"more than {self._limits.calls_at_once_per_key} at once", 1)
        if self.calls >= self._limits.calls_at_once_max:
            raise Refused(OVERLOADED, f"{self.calls} calls are in hand", 1)
        self.calls += 1
        self._in_hand[name] = self._in_hand.get(name, 0) + 1
        try:
            yield
        finally:
            self.calls -= 1
            self._in_hand[name] -= 1
            if not self._in_hand[name]:
                del self._in_hand[name]
