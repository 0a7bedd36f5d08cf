"""A connection that waits for its server at a third of the driver's price, for lines that wait all day."""

import asyncio
import contextlib
from functools import cached_property
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection, Connection, OperationalError
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from faultline.store.spoken import Spoken

T = TypeVar("T")

CANCEL_SECONDS_MAX = 5.0

LOOK_AGAIN_SECONDS = 0.5
"""uvloop forgets the listener of a socket that was reset, and tells nobody: whoever waits this long looks."""

_READABLE: Final = int(Ready.R)  # the same numbers in Wait; as plain ints they cost nothing to combine
_WRITABLE: Final = int(Ready.W)


class LeanConnection(AsyncConnection[Any]):
    """Listens to its socket once a call; the driver does it anew, with a timer, for each 8 kB of a reply.

    The timer is there to notice Ctrl-C, of which asyncio tells by itself.
    """

    @cached_property
    def spoken(self) -> Spoken:
        """Calls without a cursor, on this connection."""
        return Spoken(self)

    async def wait(self, gen: PQGen[T], interval: float = 0.0, timeout: float | None = None) -> T:
        if timeout is not None:
            return await super().wait(gen, interval or 0.1, timeout)
        try:
            return await _wait(gen, self.pgconn.socket)
        except asyncio.CancelledError:
            # What nobody waits for any more should not go on in the server; if it cannot be told, it cannot.
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                with contextlib.suppress(Exception):
                    await self.cancel_safe(timeout=CANCEL_SECONDS_MAX)
            raise


class PlainConnection(Connection[Any]):
    """The driver's own, which waits cheaply enough, with calls that need no cursor."""

    @cached_property
    def spoken(self) -> Spoken:
        """Calls without a cursor, on this connection."""
        return Spoken(self)


async def _wait(gen: PQGen[T], fileno: int) -> T:
    """Carry a generator of the driver to its end."""
    try:
        wanted = next(gen)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    loop = asyncio.get_running_loop()
    ears = _Ears(loop, fileno)
    try:
        while True:
            wanted = gen.send(await ears.hear(wanted))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    except OSError as gone:
        raise OperationalError("connection socket closed") from gone
    finally:
        ears.close()


class _Ears:
    """What a socket is ready for; listens for replies from the first question to the end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fileno: int) -> None:
        self._loop = loop
        self._fileno = fileno
        self._listening = False
        self._heard = 0
        self._news: asyncio.Future[None] | None = None
        self._alarm = loop.call_later(LOOK_AGAIN_SECONDS, self._look_again)

    async def hear(self, wanted: Wait) -> int:
        if wanted & _READABLE and not self._listening:
            self._loop.add_reader(self._fileno, self._tell, _READABLE)
            self._listening = True
        if wanted & _WRITABLE:
            self._loop.add_writer(self._fileno, self._tell, _WRITABLE)
        try:
            if not self._heard:
                self._news = self._loop.create_future()
                await self._news
        finally:
            self._news = None
            if wanted & _WRITABLE:
                self._loop.remove_writer(self._fileno)
        heard, self._heard = self._heard, 0
        return heard

    def _tell(self, ready: int) -> None:
        self._heard |= ready
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _look_again(self) -> None:
        """Have the driver read: where there is nothing it waits on, where nobody is any more it says so."""
        self._alarm = self._loop.call_later(LOOK_AGAIN_SECONDS, self._look_again)
        self._tell(_READABLE)

    def close(self) -> None:
        self._alarm.cancel()
        if self._listening:
            self._loop.remove_reader(self._fileno)
