"""Turns: which waiting call gets the next database connection of a server.

A pool serves in the order of arrival: 150 slow reads of one client delay every heartbeat behind them. Here
each call has a lane and a name. A lane leaves room for the others; inside a lane the names take turns.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Final, Literal, NamedTuple

Lane = Literal["door", "vital", "plain"]
"""door: looking up a key. vital: heartbeat, settle, outcome. plain: all else."""

LANES: Final[tuple[Lane, ...]] = ("door", "vital", "plain")
"""The first lane with a waiting call that fits gets the connection."""


class Turn(NamedTuple):
    """For whom a call is made; without a name, for the server itself."""

    name: str = ""
    lane: Lane = "plain"


_turn: ContextVar[Turn] = ContextVar("faultline_turn", default=Turn())  # noqa: B039 - a tuple does not change


@contextmanager
def taking(lane: Lane = "plain", name: str | None = None) -> Iterator[None]:
    """Calls made in the block are of this lane, and of this name; without one, the name stays.

    >>> with taking(name="key 1"), taking("vital"):
    ...     _turn.get()
    Turn(name='key 1', lane='vital')
    """
    before = _turn.set(Turn(_turn.get().name if name is None else name, lane))
    try:
        yield
    finally:
        _turn.reset(before)


def name_of_turn() -> str:
    """For whom the calls of this context are made."""
    return _turn.get().name


def for_everybody() -> Context:
    """A context for a task that works for many clients: its calls are the server's own."""
    context = copy_context()
    context.run(_turn.set, Turn())
    return context


class _Waiting:
    """One lane: how many connections it has, and the calls that wait, by name."""

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
        """The first waiting call of the next name that may have a connection; its name goes to the end."""
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


class Turns:
    """Shares `size` connections: a quarter is kept for vital calls, and one name never has a whole lane.

    >>> Turns(16).room
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

    async def take(self) -> "Place":
        """One connection's place, to be given back; TimeoutError when none came free in time."""
        name, kind = _turn.get()
        lane = self._lanes[kind]
        if self._used < self.size and lane.has_room(name):  # no call that waits could take it
            self._take(lane, name)
        else:
            await self._wait(lane, name)
        return Place(self, lane, name)

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
            if mine.done() and not mine.cancelled():  # it came in the same moment
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
        """Let the next waiting call have this place."""
        self._used -= 1
        lane.give_back(name)
        for kind in LANES:
            following = self._lanes[kind]
            while self._used < self.size and (found := following.next()):
                name, first = found
                self._take(following, name)
                first.set_result(None)


class Place(NamedTuple):
    """A place that was taken."""

    turns: Turns
    lane: _Waiting
    name: str

    def give_back(self) -> None:
        self.turns.give_back(self.lane, self.name)
