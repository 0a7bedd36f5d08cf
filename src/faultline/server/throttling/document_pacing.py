"""Pacing: large documents are checked one after the other, with pauses for all other calls.

A check is Python on the event loop: fifteen batches of 4 MiB at the same moment would delay the
heartbeats of every worker until the last one is checked. The keys take turns, as for connections.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from faultline.store.connection_turns import name_of_turn

T = TypeVar("T")

LARGE_BYTES: Final = 4_096
"""Smaller documents are checked at once, without a turn.

The slowest of 20 KB takes 10 ms: between 200 of them, the loop must reach other calls.
"""

SLICE_SECONDS: Final = 0.01
"""A turn ends after the document during which it reaches this length."""

PAUSE_SECONDS_MAX: Final = 0.5
"""A longer turn is followed by a pause of the same length, up to this: half of the loop's time stays free."""


class DocumentPacing:
    """One turn at a time, for the documents of one key.

    >>> async def example() -> list[int]:
    ...     return await DocumentPacing().all_of(map(int, ["1", "2"]), size=2 * LARGE_BYTES)
    >>> asyncio.run(example())
    [1, 2]
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @classmethod
    def of_this_loop(cls) -> "DocumentPacing":
        """The one of this event loop, shared by all APIs of a server."""
        return _paces.setdefault(asyncio.get_running_loop(), cls())

    async def one(self, check: Callable[[], T], size: int) -> T:
        """The result of a check of this many bytes."""
        if size <= LARGE_BYTES:
            return check()
        async with self._turn():
            return check()

    async def all_of(self, checks: Iterable[T], size: int) -> list[T]:
        """The results of a lazy row of checks; the bytes are those of all of them."""
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
            if mine.done() and not mine.cancelled():  # its turn came in the same moment
                self._end()
            raise

    def _end(self) -> None:
        """Give the turn to the next key; the key that had it goes to the end."""
        while self._waiting:
            name, line = self._waiting.popitem(last=False)
            first = line.popleft()
            if line:
                self._waiting[name] = line
            if not first.done():  # otherwise it was cancelled while it waited
                first.set_result(None)
                return
        self._is_taken = False


def _take(waiting: Iterable[T], made: list[T]) -> bool:
    """The documents that fit into one turn; and whether there may be more."""
    until = perf_counter() + SLICE_SECONDS
    for one in waiting:
        made.append(one)
        if perf_counter() > until:
            return True
    return False


_paces: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, DocumentPacing]] = WeakKeyDictionary()
