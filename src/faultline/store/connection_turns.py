"""Turns: the order in which waiting calls get the database connections of a server.

A pool serves in the order of arrival: 150 slow reads of one client delay every heartbeat after them. Here
each call has a lane and a name. A lane leaves room for the others; inside a lane the names take turns.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Final, Literal, NamedTuple

Lane = Literal["door", "vital", "plain"]
"""door: the check of a key. vital: heartbeat, settle, outcome. plain: all other calls."""

LANES: Final[tuple[Lane, ...]] = ("door", "vital", "plain")
"""The first lane with a waiting call that fits gets the connection."""


class ConnectionTurn(NamedTuple):
    """The client and the lane of a call; without a name, the call is the server's own."""

    name: str = ""
    lane: Lane = "plain"


_turn: ContextVar[ConnectionTurn] = ContextVar("faultline_turn", default=ConnectionTurn())  # noqa: B039 - a tuple does not change


@contextmanager
def taking(lane: Lane = "plain", name: str | None = None) -> Iterator[None]:
    """Set the lane and the name for calls in the block; without a name, the old one stays.

    >>> with taking(name="key 1"), taking("vital"):
    ...     _turn.get()
    ConnectionTurn(name='key 1', lane='vital')
    """
    before = _turn.set(ConnectionTurn(_turn.get().name if name is None else name, lane))
    try:
        yield
    finally:
        _turn.reset(before)


def name_of_turn() -> str:
    """The client of the calls in this context."""
    return _turn.get().name


def on_behalf_of_server() -> Context:
    """A context for a task that works for many clients: its calls are the server's own."""
    context = copy_context()
    context.run(_turn.set, ConnectionTurn())
    return context


class _Waiting:
    """One lane: its number of connections, and its waiting calls by name."""

    def __init__(self, most: int, per_name: int) -> None:
        self.most = most
        self.per_name = per_name
        self.used = 0
        self.held: Counter[str] = Counter()
        self.waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def has_room(self, name: str) -> bool:
        return self.used < self.most and (not name or self.held[name] < self.per_name)

    def take(self, name: str) -> None:
        self.used += 1
        self.held[name] += 1

    def give_back(self, name: str) -> None:
        self.used -= 1
        self.held[name] -= 1
        if not self.held[name]:
            del self.held[name]

    def next(self) -> tuple[str, asyncio.Future[None]] | None:
        """Take the first waiting call of the next name with room; the name goes to the end of the line."""
        for name in list(self.waiting):
            if not self.has_room(name):
                continue
            line = self.waiting.pop(name)
            while line and line[0].done():  # cancelled while it waited
                line.popleft()
            if line:
                first = line.popleft()
                if line:
                    self.waiting[name] = line
                return name, first
        return None


class ConnectionTurns:
    """Shares `size` connections: a quarter is kept for vital calls, and one name never has a whole lane.

    >>> ConnectionTurns(16).room
    {'door': 2, 'vital': 12, 'plain': 10}
    """

    def __init__(self, size: int, seconds_max: float = 10.0) -> None:
        if size < 8:
            raise ValueError(f"sharing needs 8 connections or more, not {size}")
        self.size = size
        self.seconds_max = seconds_max
        door, vital = max(1, size // 8), size - size // 4
        self.room: dict[Lane, int] = {"door": door, "vital": vital, "plain": size - size // 4 - door}
        self._lanes = {lane: _Waiting(most, max(1, most * 2 // 3)) for lane, most in self.room.items()}
        self._used = 0

    async def take(self) -> "ConnectionSlot":
        """Take a slot, which has to be given back; TimeoutError if none is free in time."""
        name, kind = _turn.get()
        lane = self._lanes[kind]
        if self._used < self.size and lane.has_room(name):  # no waiting call can use it
            self._take(lane, name)
        else:
            await self._wait(lane, name)
        return ConnectionSlot(self, lane, name)

    def waiting(self) -> dict[Lane, int]:
        """How many calls wait, by lane."""
        return {kind: sum(map(len, lane.waiting.values())) for kind, lane in self._lanes.items()}

    async def _wait(self, lane: _Waiting, name: str) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lane.waiting.setdefault(name, deque()).append(mine)
        try:
            async with asyncio.timeout(self.seconds_max):
                await mine
        except BaseException:
            if mine.done() and not mine.cancelled():  # the slot came at the same moment
                self.give_back(lane, name)
            else:
                self._leave(lane, name, mine)
            raise

    @staticmethod
    def _leave(lane: _Waiting, name: str, mine: asyncio.Future[None]) -> None:
        mine.cancel()
        line = lane.waiting.get(name)
        if line is not None and mine in line:
            line.remove(mine)
            if not line:
                del lane.waiting[name]

    def _take(self, lane: _Waiting, name: str) -> None:
        self._used += 1
        lane.take(name)

    def give_back(self, lane: _Waiting, name: str) -> None:
        """Give this slot to the next waiting call."""
        self._used -= 1
        lane.give_back(name)
        for kind in LANES:
            following = self._lanes[kind]
            while self._used < self.size and (found := following.next()):
                name, first = found
                self._take(following, name)
                first.set_result(None)


class ConnectionSlot(NamedTuple):
    """A slot that a call holds."""

    turns: ConnectionTurns
    lane: _Waiting
    name: str

    def give_back(self) -> None:
        self.turns.give_back(self.lane, self.name)
