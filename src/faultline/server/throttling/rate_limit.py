"""RateLimiter: the bound on calls of a caller, a second and at once. The same for HTTP and gRPC.

Calls are of kinds, and each kind has a budget of its own, in total and for each key. So a key that fills
the long polls takes no room from calls, and none from the heartbeats of other keys.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from faultline.server.problems import OVERLOADED, TOO_MANY, ProblemKind, RequestRefused
from faultline.server.throttling.token_bucket import TokenBucket


class RateBudget(NamedTuple):
    """The bounds on calls of a kind at the same time."""

    most: int
    per_key: int


VITAL = "vital"
"""Heartbeat, settle, outcome: with a rate of their own, so that other calls of their key cannot use it up."""


class RateLimiter:
    """Counts the calls under way.

    >>> limiter = RateLimiter({"call": RateBudget(10, 1)}, 100.0)
    >>> with limiter.passing("shop", "call"), limiter.passing("mail", "call"):
    ...     limiter.in_hand("call")
    2
    """

    def __init__(self, budgets: Mapping[str, RateBudget], per_second: float) -> None:
        self._budgets = dict(budgets)
        self._per_second = per_second
        self._rates = {kind: TokenBucket(per_second) for kind in ("any", VITAL)}
        self._of_kind = dict.fromkeys(budgets, 0)
        self._of_key: dict[tuple[str, str], int] = {}

    def in_hand(self, kind: str | None = None) -> int:
        """The calls under way, of one kind or of all."""
        return sum(self._of_kind.values()) if kind is None else self._of_kind[kind]

    def by_kind(self) -> dict[str, int]:
        """The calls under way of each kind."""
        return dict(self._of_kind)

    def has_turn(self, name: str, kind: str) -> bool:
        """Whether one more call is within the caller's rate; if so, it counts."""
        return self._rates[VITAL if kind == VITAL else "any"].take(name)

    @contextmanager
    def passing(self, name: str, kind: str) -> Iterator[None]:
        """Count a call for as long as it takes, or refuse it."""
        if not self.has_turn(name, kind):
            raise _refused(TOO_MANY, f"more than {self._per_second:g} calls a second")
        with self.holding(name, kind):
            yield

    @contextmanager
    def holding(self, name: str, kind: str) -> Iterator[None]:
        """The same without the rate, for calls counted there already."""
        budget, mine = self._budgets[kind], (kind, name)
        if self._of_key.get(mine, 0) >= budget.per_key:
            raise _refused(TOO_MANY, f"more than {budget.per_key} of kind {kind} at once")
        if self._of_kind[kind] >= budget.most:
            raise _refused(OVERLOADED, f"{self._of_kind[kind]} of kind {kind} are in hand")
        self._of_kind[kind] += 1
        self._of_key[mine] = self._of_key.get(mine, 0) + 1
        try:
            yield
        finally:
            self._of_kind[kind] -= 1
            self._of_key[mine] -= 1
            if not self._of_key[mine]:
                del self._of_key[mine]


def _refused(kind: ProblemKind, detail: str) -> RequestRefused:
    return RequestRefused(kind, f"{detail}; ask again in a moment", 1)
