"""One call on a session's socket in the event loop, and the watch of that socket from call to call."""

import asyncio
import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from psycopg import OperationalError
from psycopg.abc import PQGen
from psycopg.pq import ConnStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

T = TypeVar("T")

LOOK_AGAIN_SECONDS = 0.5
"""uvloop silently drops the reader of a socket that was reset, so a waiting call checks this often."""

LOST: Final = "the connection was lost before this was answered"

_READABLE: Final = int(Ready.R)  # Wait has the same values; plain ints combine faster
_WRITABLE: Final = int(Ready.W)


class SocketWatch:
    """A session's socket in an event loop. The reader stays between calls: each time anew it cost 10 us.

    It watches a duplicate of the descriptor: the driver may close its own at any moment, and the loop would
    take the next socket of that number for it. It keeps alive neither the connection nor the loop.
    """

    __slots__ = ("_fileno", "_has_alarm", "_loop", "_reads", "_wanted", "_writes", "ear", "exchange")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self.exchange: Exchange[Any] | None = None
        """The call that has the socket."""
        self.ear: Callable[[], None] | None = None
        """Called when bytes arrive between calls."""
        self._fileno = -1
        self._reads = self._writes = False
        self._wanted: Wait | None = None
        self._has_alarm = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop()
        if loop is None:
            raise OperationalError("the event loop of this connection has ended")
        return loop

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        return self._loop() is loop

    def begin(self, exchange: "Exchange[Any]") -> None:
        """Give the socket to a call, which is looked at each half a second."""
        self.exchange, self._wanted = exchange, None
        if not self._has_alarm:
            self._set_alarm()

    def _set_alarm(self) -> None:
        self._has_alarm = True
        self.loop.call_later(LOOK_AGAIN_SECONDS, self._look_again)

    def wait_for(self, wanted: Wait, pgconn: PGconn) -> None:
        """Have the call go on when the socket is ready for this."""
        if wanted is self._wanted and self._reads:
            return
        try:
            if wanted & _READABLE:
                self.read(pgconn)
            if bool(wanted & _WRITABLE) != self._writes:
                self._write(pgconn)
        except (OSError, RuntimeError) as gone:  # uvloop raises the latter for a socket that was reset
            raise OperationalError("connection socket closed") from gone
        self._wanted = wanted

    def read(self, pgconn: PGconn) -> None:
        if not self._reads:
            self.loop.add_reader(self._opened(pgconn), self._readable)
            self._reads = True

    def _write(self, pgconn: PGconn) -> None:
        self._writes = not self._writes
        if self._writes:
            self.loop.add_writer(self._opened(pgconn), self._writable)
        else:
            self.loop.remove_writer(self._fileno)

    def _opened(self, pgconn: PGconn) -> int:
        if self._fileno < 0:
            self._fileno = os.dup(pgconn.socket)
        return self._fileno

    def _readable(self) -> None:
        if self.exchange is not None and (self._wanted is None or self._wanted & _READABLE):
            self.exchange.go_on(Ready.R)
        elif self.exchange is None and self.ear is not None:
            self.ear()
        else:
            self._stop_reading()  # what came is read by the next call, or is the end of the session

    def _writable(self) -> None:
        if self.exchange is not None:
            self.exchange.go_on(Ready.W)

    def _look_again(self) -> None:
        self._has_alarm = False
        if self.exchange is not None:
            self._set_alarm()
            self.exchange.look_again()

    def end(self, exchange: "Exchange[Any]", goes_on: bool) -> None:
        """A call has ended; the watch ends with it unless the connection can be used again."""
        if self.exchange is not exchange:
            return
        self.exchange = None
        if not goes_on:
            self.close()
        elif self._writes:
            self._writes = False
            self.loop.remove_writer(self._fileno)

    def _stop_reading(self) -> None:
        self._reads, self._wanted = False, None
        self.loop.remove_reader(self._fileno)
        if self.exchange is None:
            self.close()

    def close(self) -> None:
        """Leave the socket; a later call would watch it again."""
        fileno, self._fileno, self._wanted = self._fileno, -1, None
        if fileno < 0:
            return
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(OSError, RuntimeError):  # uvloop, for a socket that was reset
                if self._reads:
                    loop.remove_reader(fileno)
            with contextlib.suppress(OSError, RuntimeError):
                if self._writes:
                    loop.remove_writer(fileno)
        self._reads = self._writes = False
        os.close(fileno)

    def __del__(self) -> None:
        if self._fileno >= 0:  # its loop has ended, or nothing came since its connection was dropped
            os.close(self._fileno)


class Exchange(Generic[T]):
    """One call: each step runs when the socket is ready; the waiting coroutine is woken once."""

    __slots__ = (
        "_began_at", "_gen", "_left", "_lost", "_pgconn", "_unanswered", "_watch", "ended", "next",
    )  # fmt: skip

    def __init__(
        self,
        gen: PQGen[T],
        pgconn: PGconn,
        watch: SocketWatch,
        unanswered: "Callable[[Exchange[Any], float], None]",
    ) -> None:
        self.ended: asyncio.Future[T] = watch.loop.create_future()
        self.next: Exchange[Any] | None = None
        """The call that gets the socket after this one."""
        self._gen = gen
        self._pgconn = pgconn
        self._watch = watch
        self._unanswered = unanswered
        self._began_at = 0.0
        self._left = self._lost = False

    @property
    def is_under_way(self) -> bool:
        """Whether it has the socket, or waits for it."""
        return not self._left

    def begin(self) -> None:
        self._began_at = self._watch.loop.time()
        self._watch.begin(self)
        self.go_on(None)

    def go_on(self, ready: Ready | None) -> None:
        """The socket is ready; None for the first step."""
        if self.ended.done():
            return
        try:
            wanted = self._gen.send(ready)  # type: ignore[arg-type]
            if not self.ended.done():
                self._watch.wait_for(wanted, self._pgconn)
        except StopIteration as end:
            if not self.ended.done():
                self.ended.set_result(end.value)
            self.close()
        except Exception as fault:  # the waiting coroutine gets it, not the loop
            self._end_with(fault)
            self.close()

    def _end_with(self, fault: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(fault)
            self.ended.exception()  # no warning if no coroutine waits for it

    def look_again(self) -> None:
        """Let the driver read: without data it goes on waiting, and a closed connection raises an error."""
        self.read_on()
        if not self.ended.done():
            self._unanswered(self, self._watch.loop.time() - self._began_at)

    def read_on(self) -> None:
        self.go_on(Ready.R)

    @property
    def _goes_on(self) -> bool:
        """Whether the call has all its replies, and the connection can be used again."""
        if self._lost or not self.ended.done() or self.ended.cancelled():
            return False
        return self._pgconn.status == ConnStatus.OK

    def close(self) -> None:
        """Give the socket to the next call, or to the reader between calls; a second close has no effect."""
        if self._left:
            return
        self._left = True
        with contextlib.suppress(Exception):
            self._gen.close()  # or the collector would end it later, on a closed socket
        goes_on = self._goes_on
        try:
            self._watch.end(self, goes_on)
        except (OSError, RuntimeError):  # uvloop raises the latter for a socket that was reset
            goes_on = False
        if self.next is not None and goes_on:
            self.next.begin()
        elif self.next is not None:
            self.next.fail()

    def fail(self, reason: str = LOST) -> None:
        """End the call with an error: the call before it broke off in a reply, or the server is gone."""
        self._lost = True
        self._end_with(OperationalError(reason))
        self.close()
