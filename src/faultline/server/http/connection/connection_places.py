"""ConnectionPlaces: the bounds on open connections, and which one makes room for a new one."""

from collections import Counter
from collections.abc import Collection
from typing import Protocol

from faultline.server.limits import Limits
from faultline.server.listener.address_limits import AddressAllowance


class Placed(Protocol):
    """The part of an HTTP connection that takes a place."""

    address: str
    seen_at: float

    @property
    def may_leave(self) -> bool: ...
    def make_way(self) -> None: ...
    def cut(self) -> None: ...
    def refuse_for_room(self) -> None: ...


class ConnectionPlaces:
    """The connections of one server, in all and by address; beyond the bound the idle for longest goes."""

    def __init__(self, limits: Limits, allowance: AddressAllowance) -> None:
        self.allowance = allowance
        self.of_address: Counter[str] = Counter()
        self._most = limits.connections_max

    def enter(self, new: Placed, others: set[Placed]) -> None:
        """Count a connection, and have another one make room for it past a bound; `others` holds it too."""
        self.of_address[new.address] += 1
        most = self.allowance.of(new.address)
        if most is not None and self.of_address[new.address] > most:
            self._make_room(new, most, [other for other in others if other.address == new.address], others)
        elif len(others) > self._most:
            self._make_room(new, self._most, others, others)

    def leave(self, address: str) -> None:
        """A connection of this address is closed."""
        self.of_address[address] -= 1
        if not self.of_address[address]:
            del self.of_address[address]

    def _make_room(self, new: Placed, most: int, among: Collection[Placed], others: set[Placed]) -> None:
        leaving = [other for other in among if other.may_leave and other is not new]
        if leaving:
            oldest = min(leaving, key=lambda other: other.seen_at)
            others.discard(oldest)  # now: its own callback comes only in the loop's next turn
            oldest.make_way()
        elif len(among) > 2 * most:
            new.cut()
        else:
            new.refuse_for_room()
