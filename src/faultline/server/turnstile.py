"""Turnstile: how many calls a caller may make, a second and at once. The same for HTTP and gRPC.

Calls are of kinds, and each kind has a budget of its own, in all and for each key. So a key that fills the
long polls takes no room from calls, and none from the heartbeats of other keys.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, NamedTuple

from faultline.server.rates import Rate


class Budget(NamedTuple):
    """How many calls of a kind there may be at once."""

    most: int
    per_key: int


Why = Literal["rate", "share", "full"]
"""Too many a second; more than a key's share at once; no room, whoever asks."""

Refuse = Callable[[Why, str], Exception]
"""How a door says no."""

VITAL = "vital"
"""Heartbeat, settle, outcome: with a rate of their own, so that other calls of their key cannot use it up."""


class Turnstile:
    """Counts the calls in hand.

    >>> gate = Turnstile({"call": Budget(10, 1)}, 100.0, lambda why, detail: PermissionError(why, detail))
    >>> with gate.passing("shop", "call"), gate.passing("mail", "call"):
    ...     gate.in_hand("call")
    2
    """

    def __init__(self, budgets: Mapping[str, Budget], per_second: float, refuse: Refuse) -> None:
        self._budgets = dict(budgets)
        self._per_second = per_second
        self._refuse = refuse
        self._rates = {kind: Rate(per_second) for kind in ("any", VITAL)}
        self._of_kind = dict.fromkeys(budgets, 0)
        self._of_key: dict[tuple[str, str], int] = {}

    def in_hand(self, kind: str | None = None) -> int:
        """How many calls are being served, of one kind or of all."""
        return sum(self._of_kind.values()) if kind is None else self._of_kind[kind]

    def by_kind(self) -> dict[str, int]:
        """How many calls of each kind are being served."""
        return dict(self._of_kind)

    def has_turn(self, name: str, kind: str) -> bool:
        """Whether one more call is within the caller's rate; if so, it counts."""
        return self._rates[VITAL if kind == VITAL else "any"].take(name)

    @contextmanager
    def passing(self, name: str, kind: str) -> Iterator[None]:
        """Let a call through for as long as it takes, or refuse it."""
        if not self.has_turn(name, kind):
            raise self._refuse("rate", f"more than {self._per_second:g} calls a second")
        with self.holding(name, kind):
            yield

    @contextmanager
    def holding(self, name: str, kind: str) -> Iterator[None]:
        """The same without the rate, for what was counted there already."""
        budget, mine = self._budgets[kind], (kind, name)
        if self._of_key.get(mine, 0) >= budget.per_key:
            raise self._refuse("share", f"more than {budget.per_key} of kind {kind} at once")
        if self._of_kind[kind] >= budget.most:
            raise self._refuse("full", f"{self._of_kind[kind]} of kind {kind} are in hand")
        self._of_kind[kind] += 1
        self._of_key[mine] = self._of_key.get(mine, 0) + 1
        try:
            yield
        finally:
            self._of_kind[kind] -= 1
            self._of_key[mine] -= 1
            if not self._of_key[mine]:
                del self._of_key[mine]
