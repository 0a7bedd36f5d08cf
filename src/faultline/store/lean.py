"""A connection that waits for its server at a third of the driver's price, for lines that wait all day."""

import asyncio
import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable
from functools import cached_property
from time import monotonic
from typing import Any, Final, Generic, Self, TypeVar

from psycopg import AsyncConnection, Connection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.pq import ConnStatus, TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.rows import tuple_row
from psycopg.waiting import Ready, Wait

from faultline.store.call import Row
from faultline.store.hosts import (
    LOOK_AFTER_SECONDS,
    NOT_THERE,
    PLAIN_QUESTION,
    QUICK_SECONDS,
    SILENT_SECONDS_MAX,
    STATE_QUESTION,
    Hosts,
    NoPrimary,
    SecondLook,
    ServerState,
    hosts_of,
    in_thread,
)
from faultline.store.spoken import Message, Spoken, Take
from faultline.store.turned import Watched

T = TypeVar("T")

CHANNEL = "faultline"

Heard = Callable[[str | None], None]
"""Called with the queue that may have work, with "" for all, with None when nothing can be heard now."""

CANCEL_SECONDS_MAX = 5.0

TICK_SECONDS: Final = 0.1
"""How often a thread that waits for its server is awake: to notice Ctrl-C, and silence."""

LOOK_AGAIN_SECONDS = 0.5
"""uvloop forgets the listener of a socket that was reset, and tells nobody: whoever waits this long looks."""

LOST: Final = "the connection was lost before this was answered"

_READABLE: Final = int(Ready.R)  # the same numbers in Wait; as plain ints they cost nothing to combine
_WRITABLE: Final = int(Ready.W)


class LeanConnection(Watched, AsyncConnection[Any]):
    """Listens to its socket once a call; the driver does it anew, with a timer, for each 8 kB of a reply.

    The timer is there to notice Ctrl-C, of which asyncio tells by itself.
    """

    _ear: Callable[[], None] | None = None
    """Called when bytes come that nobody has asked for."""
    _talks: "tuple[Talk[Any], ...]" = ()
    """Those that are under way: the first has the socket, the others wait for it."""
    second_look: SecondLook | None = None
    _looking: asyncio.Task[None] | None = None
    _look_at = 0.0

    @classmethod
    async def connect(  # type: ignore[override]
        cls,
        conninfo: str = "",
        *,
        look_after: float = LOOK_AFTER_SECONDS,
        silent_max: float = SILENT_SECONDS_MAX,
        **options: Any,
    ) -> Self:
        """Connect to the newest host that takes writes, and look twice at a call that is not answered."""
        hosts, options = _hosts_and_options(conninfo, options)
        look = SecondLook.of(hosts, look_after, silent_max)
        if not hosts.are_many:
            conn = await super().connect(hosts.conninfo, **options)
            conn.second_look = look
            return conn
        try:
            return await cls._to_newest(look, {**options, "connect_timeout": QUICK_SECONDS})
        except NoPrimary:
            raise
        except Error:  # what was known of the hosts is so no longer: they are asked anew
            hosts.forget()
            return await cls._to_newest(look, options)

    @classmethod
    async def _to_newest(cls, look: SecondLook, options: dict[str, Any]) -> Self:
        host = await in_thread(look.hosts.choose)
        conn = await super().connect(host, **options)
        try:
            conn.second_look = look._replace(host=host, made_at=monotonic())
            await conn._admit(conn.second_look)
        except BaseException:
            await conn.close()
            raise
        return conn

    async def _admit(self, look: SecondLook) -> None:
        async with self.cursor(row_factory=tuple_row) as cursor:
            try:
                await cursor.execute(STATE_QUESTION, prepare=False)
            except Error as fault:
                if fault.sqlstate not in NOT_THERE:
                    raise
                await cursor.execute(PLAIN_QUESTION, prepare=False)
            self.second_look = _admitted(look, await cursor.fetchone())

    @property
    def is_stale(self) -> bool:
        """Whether its server was given up since, or may be an old primary that woke up."""
        return self.second_look is not None and self.second_look.is_stale

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
        if self._looking is not None:
            self._looking.cancel()
        if self._ear is not None and self.pgconn.status == ConnStatus.OK:
            asyncio.get_running_loop().remove_reader(self.pgconn.socket)
        self._ear = None
        await super().close()

    def hang_up(self, reason: str = LOST) -> None:
        """Close the socket here and now, without a word to a server that may not be there to hear it."""
        self._fail_all(reason)
        if self._ear is None:
            self.pgconn.finish()

    def _fail_all(self, reason: str = LOST) -> None:
        for talk in self._talks:
            talk.fail(reason)

    def _unanswered(self, talk: "Talk[Any]", seconds: float) -> None:
        """Told twice a second: look whether the server still is the one, when it is time for that."""
        look = self.second_look
        if look is not None and self._looking is None and seconds >= max(look.after, self._look_at):
            self._looking = asyncio.get_running_loop().create_task(self._look_twice(look, talk, seconds))

    async def _look_twice(self, look: SecondLook, talk: "Talk[Any]", seconds: float) -> None:
        try:
            reason, pause = await in_thread(lambda: look.judge(seconds))
            self._look_at = seconds + pause
            if reason is not None and talk.is_under_way:
                look.hosts.leave(look.host)
                self.hang_up(reason)
        finally:
            self._looking = None

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
        talk = Talk(gen, self.pgconn, self._fileno, self._ear, self._unanswered)
        self._look_at = 0.0
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


class PlainConnection(Watched, Connection[Any]):
    """The driver's own, which waits cheaply enough, with calls that need no cursor."""

    second_look: SecondLook | None = None

    @classmethod
    def connect(  # type: ignore[override]
        cls,
        conninfo: str = "",
        *,
        look_after: float = LOOK_AFTER_SECONDS,
        silent_max: float = SILENT_SECONDS_MAX,
        **options: Any,
    ) -> Self:
        """Connect to the newest host that takes writes, and look twice at a call that is not answered."""
        hosts, options = _hosts_and_options(conninfo, options)
        look = SecondLook.of(hosts, look_after, silent_max)
        if not hosts.are_many:
            conn = super().connect(hosts.conninfo, **options)
            conn.second_look = look
            return conn
        try:
            return cls._to_newest(look, {**options, "connect_timeout": QUICK_SECONDS})
        except NoPrimary:
            raise
        except Error:  # what was known of the hosts is so no longer: they are asked anew
            hosts.forget()
            return cls._to_newest(look, options)

    @classmethod
    def _to_newest(cls, look: SecondLook, options: dict[str, Any]) -> Self:
        host = look.hosts.choose()
        conn = super().connect(host, **options)
        try:
            conn.second_look = look._replace(host=host, made_at=monotonic())
            conn._admit(conn.second_look)
        except BaseException:
            conn.close()
            raise
        return conn

    def _admit(self, look: SecondLook) -> None:
        with self.cursor(row_factory=tuple_row) as cursor:
            try:
                cursor.execute(STATE_QUESTION, prepare=False)
            except Error as fault:
                if fault.sqlstate not in NOT_THERE:
                    raise
                cursor.execute(PLAIN_QUESTION, prepare=False)
            self.second_look = _admitted(look, cursor.fetchone())

    @property
    def is_stale(self) -> bool:
        """Whether its server was given up since, or may be an old primary that woke up."""
        return self.second_look is not None and self.second_look.is_stale

    def wait(self, gen: PQGen[T], interval: float = TICK_SECONDS, timeout: float | None = None) -> T:
        look = self.second_look
        return super().wait(gen if look is None else self._looking_twice(gen, look), interval, timeout)

    def _looking_twice(self, gen: PQGen[T], look: SecondLook) -> PQGen[T]:
        """The same steps; those at which nothing has come for long are used for a second look."""
        heard_at = monotonic()
        look_at = heard_at + look.after
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard_at = monotonic()
                    look_at = heard_at + look.after
                elif monotonic() >= look_at:
                    look_at = self._look(look, monotonic() - heard_at)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _look(self, look: SecondLook, silent_for: float) -> float:
        """When to look again; OperationalError where the server is to be left."""
        reason, pause = look.judge(silent_for)
        if reason is not None and not is_readable(self.fileno()):
            look.hosts.leave(look.host)
            self.close()  # or a rollback would wait for the same server
            raise OperationalError(reason)
        return monotonic() + pause

    @cached_property
    def spoken(self) -> Spoken:
        """Calls without a cursor, on this connection."""
        return Spoken(self)


_OF_THE_DRIVER: Final = ("autocommit", "prepare_threshold", "context", "row_factory", "cursor_factory")


def _hosts_and_options(conninfo: str, options: dict[str, Any]) -> tuple[Hosts, dict[str, Any]]:
    """The hosts of a DSN with the parameters given beside it, and the options that are not the server's."""
    parameters = {name: value for name, value in options.items() if name not in _OF_THE_DRIVER}
    hosts = hosts_of(make_conninfo(conninfo, **parameters) if parameters else conninfo)
    return hosts, {name: value for name, value in options.items() if name in _OF_THE_DRIVER}


def _admitted(look: SecondLook, row: Row | None) -> SecondLook:
    state = ServerState(*row) if row is not None else None
    if state is not None:
        look.hosts.admit(state)
    return look._replace(state=state)


def is_readable(fileno: int) -> bool:
    """Whether something has come."""
    poll = select.poll()  # select refuses descriptors past 1,023
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))


def _nobody_hears(fault: Error) -> PQGen[list[Row]]:
    yield from ()
    raise fault


class Talk(Generic[T]):
    """Goes on in the very moment the socket is ready; whoever waits is woken once, at the end of all of it.

    It listens for replies from the first question to the last. A socket that has ended is left in that very
    moment too: its number goes to the next that is opened, and the loop would take that one for it.
    """

    def __init__(
        self,
        gen: PQGen[T],
        pgconn: PGconn,
        fileno: int,
        ear: Callable[[], None] | None,
        unanswered: "Callable[[Talk[Any], float], None]",
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[T] = self._loop.create_future()
        self.next: Talk[Any] | None = None
        """Who has the socket after this one."""
        self._gen = gen
        self._pgconn = pgconn
        self._fileno = fileno
        self._ear = ear
        self._unanswered = unanswered
        self._looks = 0
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
        self._looks += 1
        if not self.ended.done():
            self._unanswered(self, self._looks * LOOK_AGAIN_SECONDS)

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

    def fail(self, reason: str = LOST) -> None:
        """The one before it left the connection in the middle of a reply, or without a server."""
        self._lost = True
        self._end_with(OperationalError(reason))
        self.close()
