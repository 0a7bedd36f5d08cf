"""Pacing: large documents are checked one after the other, with time in between for all other calls.

A check is Python on the event loop: fifteen batches of 4 MiB that arrive together would hold up the
heartbeats of every worker for as long as all of them take. The keys take turns, as they do for connections.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from faultline.store.turns import name_of_turn

T = TypeVar("T")

LARGE_BYTES: Final = 4_096
"""Documents that are smaller in all are checked at once, without a turn.

The dearest of 20 KB takes 10 ms: of 200 that come together, each must leave the loop to the calls of others.
"""

SLICE_SECONDS: Final = 0.01
"""A turn ends after the document during which it has lasted this long."""

PAUSE_SECONDS_MAX: Final = 0.5
"""A longer turn is followed by a pause as long as itself, up to this: half of the loop's time stays free."""


class Pacing:
    """One turn at a time, for the documents of one key.

    >>> async def example() -> list[int]:
    ...     return await Pacing().all_of(map(int, ["1", "2"]), size=2 * LARGE_BYTES)
    >>> asyncio.run(example())
    [1, 2]
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @classmethod
    def of_this_loop(cls) -> "Pacing":
        """The one of this event loop: every door of a server shares it."""
        return _paces.setdefault(asyncio.get_running_loop(), cls())

    async def one(self, check: Callable[[], T], size: int) -> T:
        """What a check of this many bytes gives."""
        if size <= LARGE_BYTES:
            return check()
        async with self._turn():
            return check()

    async def all_of(self, checks: Iterable[T], size: int) -> list[T]:
        """All that a lazy row of checks gives; the bytes are those of all of them."""
        if size <= LARGE_BYTES:
            return list(checks)
        made: list[T] = []
        waiting, more = iter(checks), True
        while more:
            async with self._turn():
                more = _take(waiting, made)
        return made

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        await self._begin(name_of_turn())
        began = perf_counter()
        try:
            yield
        finally:
            took = perf_counter() - began
            if took > SLICE_SECONDS:
                # The turn goes on without its holder, which may be cancelled meanwhile.
                asyncio.get_running_loop().call_later(min(took, PAUSE_SECONDS_MAX), self._end)
            else:
                self._end()

    async def _begin(self, name: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():  # it came in the same moment
                self._end()
            raise

    def _end(self) -> None:
        """The next key has the turn; the one that had it goes to the end."""
        while self._waiting:
            name, line = self._waiting.popitem(last=False)
            first = line.popleft()
            if line:
                self._waiting[name] = line
            if not first.done():  # else it was cancelled while it waited
                first.set_result(None)
                return
        self._is_taken = False


def _take(waiting: Iterable[T], made: list[T]) -> bool:
    """As many as fit into one turn; whether there may be more."""
    until = perf_counter() + SLICE_SECONDS
    for one in waiting:
        made.append(one)
        if perf_counter() > until:
            return True
    return False


_paces: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Pacing]] = WeakKeyDictionary()
