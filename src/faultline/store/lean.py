"""A connection that waits for its server at a third of the driver's price, for lines that wait all day."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from psycopg import AsyncConnection, Connection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.pq import ConnStatus, TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from faultline.store.call import Row
from faultline.store.spoken import Message, Spoken, Take

T = TypeVar("T")

CHANNEL = "faultline"

Heard = Callable[[str | None], None]
"""Called with the queue that may have work, with "" for all, with None when nothing can be heard now."""

CANCEL_SECONDS_MAX = 5.0

LOOK_AGAIN_SECONDS = 0.5
"""uvloop forgets the listener of a socket that was reset, and tells nobody: whoever waits this long looks."""

_READABLE: Final = int(Ready.R)  # the same numbers in Wait; as plain ints they cost nothing to combine
_WRITABLE: Final = int(Ready.W)


class LeanConnection(AsyncConnection[Any]):
    """Listens to its socket once a call; the driver does it anew, with a timer, for each 8 kB of a reply.

    The timer is there to notice Ctrl-C, of which asyncio tells by itself.
    """

    _ear: Callable[[], None] | None = None
    """Called when bytes come that nobody has asked for."""
    _talks: "tuple[Talk[Any], ...]" = ()
    """Those that are under way: the first has the socket, the others wait for it."""

    @cached_property
    def spoken(self) -> Spoken:
        """Calls without a cursor, on this connection."""
        return Spoken(self)

    @cached_property
    def _fileno(self) -> int:
        """Asked once, while there is one: of a broken connection the driver does not tell it."""
        return self.pgconn.socket

    @property
    def listens(self) -> bool:
        """Whether it tells of wake-ups."""
        return self._ear is not None

    async def listen(self, heard: Heard, lost: Callable[[], None]) -> None:
        """Tell of each wake-up in the very moment its bytes arrive, also between calls; and of the end."""
        await self.execute(f"listen {CHANNEL}")
        pgconn, fileno, loop = self.pgconn, self.pgconn.socket, asyncio.get_running_loop()

        def hear() -> None:
            """Straight from the socket: the driver's own iterator takes two more turns of the loop."""
            try:
                pgconn.consume_input()
                while news := pgconn.notifies():
                    heard(news.extra.decode(errors="replace"))
            except Exception:
                loop.remove_reader(fileno)
                lost()

        self.add_notify_handler(lambda news: heard(news.payload))
        self._ear = hear
        loop.add_reader(fileno, hear)
        heard("")  # what came before we listened was not heard

    def look(self) -> None:
        """Look by hand, unless a call is under way: uvloop forgets whoever listens to a broken socket."""
        if self._ear is not None and self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._ear()

    async def close(self) -> None:
        self._fail_all()  # or the loop would listen to a socket that is gone
        if self._ear is not None and self.pgconn.status == ConnStatus.OK:
            asyncio.get_running_loop().remove_reader(self.pgconn.socket)
        self._ear = None
        await super().close()

    def hang_up(self) -> None:
        """Close the socket here and now, without a word to a server that may not be there to hear it."""
        self._fail_all()
        if self._ear is None:
            self.pgconn.finish()

    def _fail_all(self) -> None:
        for talk in self._talks:
            talk.fail()

    async def wait(self, gen: PQGen[T], interval: float = 0.0, timeout: float | None = None) -> T:
        if timeout is not None:
            return await super().wait(gen, interval or 0.1, timeout)
        return await self.reply(self._begin(gen))

    def say(self, message: Message, take: Take | None) -> "Talk[list[Row]]":
        """Say something in line, here and now; `reply` waits for what comes of it."""
        try:
            hearing = self.spoken.say(message, take)
        except Error as fault:
            self._fail_all()  # the driver may have closed the socket by now
            hearing = _nobody_hears(fault)
        talk = self._begin(hearing)
        if talk is not self._talks[0] and not self.pgconn.is_busy():
            # To send this much the driver had to read first: of that nobody is told by the socket any more.
            asyncio.get_running_loop().call_soon(self._talks[0].read_on)
        return talk

    def _begin(self, gen: PQGen[T]) -> "Talk[T]":
        """Carry a generator of the driver: now, or when the last one has come to its end."""
        before = self._under_way()
        talk = Talk(gen, self.pgconn, self._fileno, self._ear)
        self._talks = (*before, talk)
        if before:
            before[-1].next = talk
        else:
            talk.begin()
        return talk

    async def reply(self, talk: "Talk[T]") -> T:
        try:
            return await talk.ended
        except asyncio.CancelledError:
            # What nobody waits for any more should not go on in the server; if it cannot be told, it cannot.
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                with contextlib.suppress(Exception):
                    await self.cancel_safe(timeout=CANCEL_SECONDS_MAX)
            raise
        finally:
            talk.close()
            self._talks = self._under_way()  # it has its reply, which may be large

    def _under_way(self) -> "tuple[Talk[Any], ...]":
        return tuple(talk for talk in self._talks if talk.is_under_way)


class Cutter:
    """Ends a connection from outside the thread that uses it, which may be waiting for its server.

    A second number for the same socket, so that it is never another's: the first may be closed, and given to
    the next that is opened, at any moment.
    """

    def __init__(self, conn: Connection[Any]) -> None:
        self._lock = threading.Lock()
        self._socket = socket.socket(fileno=os.dup(conn.fileno()))
        self.has_cut = False

    def cut(self) -> None:
        """Have whoever waits for the server find that it is gone; nothing more is sent."""
        self.has_cut = True
        with self._lock, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            self._socket.close()


class PlainConnection(Connection[Any]):
    """The driver's own, which waits cheaply enough, with calls that need no cursor."""

    @cached_property
    def spoken(self) -> Spoken:
        """Calls without a cursor, on this connection."""
        return Spoken(self)


def _nobody_hears(fault: Error) -> PQGen[list[Row]]:
    yield from ()
    raise fault


class Talk(Generic[T]):
    """Goes on in the very moment the socket is ready; whoever waits is woken once, at the end of all of it.

    It listens for replies from the first question to the last. A socket that has ended is left in that very
    moment too: its number goes to the next that is opened, and the loop would take that one for it.
    """

    def __init__(self, gen: PQGen[T], pgconn: PGconn, fileno: int, ear: Callable[[], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[T] = self._loop.create_future()
        self.next: Talk[Any] | None = None
        """Who has the socket after this one."""
        self._gen = gen
        self._pgconn = pgconn
        self._fileno = fileno
        self._ear = ear
        self._reads = self._writes = self._left = self._lost = False
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has the socket, or is to have it."""
        return not self._left

    def begin(self) -> None:
        self._look_again_later()
        self._go_on(None)

    def _go_on(self, ready: Ready | None) -> None:
        """The socket is ready; None for the first step."""
        if self.ended.done():
            return
        try:
            wanted = self._gen.send(ready)  # type: ignore[arg-type]
            if not self.ended.done():
                self._listen(wanted)
        except StopIteration as end:
            if not self.ended.done():
                self.ended.set_result(end.value)
            self.close()
        except Exception as fault:  # whoever waits hears of it, not the loop
            self._end_with(fault)
            self.close()

    def _end_with(self, fault: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(fault)
            self.ended.exception()  # nobody may be waiting for it

    def _listen(self, wanted: Wait) -> None:
        try:
            if wanted & _READABLE and not self._reads:
                self._loop.add_reader(self._fileno, self._go_on, Ready.R)
                self._reads = True
            if bool(wanted & _WRITABLE) != self._writes:
                self._writes = not self._writes
                if self._writes:
                    self._loop.add_writer(self._fileno, self._go_on, Ready.W)
                else:
                    self._loop.remove_writer(self._fileno)
        except (OSError, RuntimeError) as gone:  # the latter is uvloop's word for a socket that was reset
            raise OperationalError("connection socket closed") from gone

    def _look_again_later(self) -> None:
        self._alarm = self._loop.call_later(LOOK_AGAIN_SECONDS, self._look_again)

    def _look_again(self) -> None:
        """Have the driver read: where there is nothing it waits on, where nobody is any more it says so."""
        self._look_again_later()
        self.read_on()

    def read_on(self) -> None:
        self._go_on(Ready.R)

    @property
    def _goes_on(self) -> bool:
        """Whether the connection has nothing more to say to us, and will be used again."""
        if self._lost or not self.ended.done() or self.ended.cancelled():
            return False
        return self._pgconn.status == ConnStatus.OK

    def close(self) -> None:
        """Leave the socket to the next, or to whoever listens between calls; said twice, it is left once."""
        if self._left:
            return
        self._left = True
        if self._alarm is not None:
            self._alarm.cancel()
        with contextlib.suppress(Exception):
            self._gen.close()  # or its last words come when memory is cleared, over a socket that is gone
        goes_on = self._goes_on
        try:
            self._leave_socket(goes_on)
        except (OSError, RuntimeError):  # the latter is uvloop's word for a socket that was reset
            goes_on = False
        if self.next is not None and goes_on:
            self.next.begin()
        elif self.next is not None:
            self.next.fail()

    def _leave_socket(self, goes_on: bool) -> None:
        if self._writes:
            self._loop.remove_writer(self._fileno)
        if self._ear is not None and goes_on:
            self._loop.add_reader(self._fileno, self._ear)
        elif self._reads or self._ear is not None:
            self._loop.remove_reader(self._fileno)

    def fail(self) -> None:
        """The one before it left the connection in the middle of a reply, or without a server."""
        self._lost = True
        self._end_with(OperationalError("the connection was lost before this was answered"))
        self.close()
