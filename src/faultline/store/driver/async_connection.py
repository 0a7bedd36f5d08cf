"""A connection whose wait for the server costs a third of the driver's, for connections that wait all day."""

import asyncio
import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable
from functools import cached_property
from time import monotonic
from typing import Any, Final, Self, TypeVar

from psycopg import AsyncConnection, Connection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from faultline.store.call import Row
from faultline.store.driver.exchange import LOST, Exchange, SocketWatch
from faultline.store.driver.prepared import PreparedCalls, PreparedMessage, Take
from faultline.store.servers.hosts import (
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
from faultline.store.servers.read_only import WritableCheck

T = TypeVar("T")

CHANNEL = "faultline"

Heard = Callable[[str | None], None]
"""Called with the queue that may have work, "" for all queues, or None when no wake-up can arrive now."""

CANCEL_SECONDS_MAX = 5.0

TICK_SECONDS: Final = 0.1
"""How often a thread that waits for its server wakes up: to notice Ctrl-C, and silence."""


class AsyncPqConnection(WritableCheck, AsyncConnection[Any]):
    """Waits in the event loop for a third of the driver's cost, which adds a reader and a timer to each wait.

    The reader stays from call to call. The driver's timer is for Ctrl-C, which asyncio notices itself.
    """

    _ear: Callable[[], None] | None = None
    """Called when bytes arrive between calls."""
    _watch: SocketWatch | None = None
    _talks: "tuple[Exchange[Any], ...]" = ()
    """The calls under way: the first has the socket, the others wait for it."""
    second_look: SecondLook | None = None
    lender: Any = None
    """The pool it goes back to, while it is lent."""
    reset_due: bytes | None = None
    """Statements that make the session as new, and were not sent yet."""
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
        except Error:  # the known state of the hosts is outdated: ask again
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
    def prepared_calls(self) -> PreparedCalls:
        """Calls without a cursor, on this connection."""
        return PreparedCalls(self)

    def take_reset(self) -> bytes | None:
        """The statements that are still due: the caller sends them."""
        due, self.reset_due = self.reset_due, None
        return due

    @property
    def listens(self) -> bool:
        """Whether it reports wake-ups."""
        return self._ear is not None

    async def listen(self, heard: Heard, lost: Callable[[], None]) -> None:
        """Call `heard` for each wake-up as its bytes arrive, also between calls; call `lost` at the end."""
        await self.execute(f"listen {CHANNEL}")
        pgconn, watch = self.pgconn, self._watched()

        def hear() -> None:
            """Read from the socket directly: the driver's iterator takes two more turns of the loop."""
            try:
                pgconn.consume_input()
                while news := pgconn.notifies():
                    heard(news.extra.decode(errors="replace"))
            except Exception:
                watch.close()
                lost()

        self.add_notify_handler(lambda news: heard(news.payload))
        self._ear = watch.ear = hear
        watch.read(pgconn)
        heard("")  # wake-ups before the LISTEN are missed

    def look(self) -> None:
        """Read the socket, unless a call is under way: uvloop drops the reader of a broken socket."""
        if self._ear is not None and self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._ear()

    async def close(self) -> None:
        self.fail_all()  # or the loop would watch a closed socket
        if self._looking is not None:
            self._looking.cancel()
        self._ear = None
        if self._watch is not None:
            self._watch.close()
        await super().close()

    def hang_up(self, reason: str = LOST) -> None:
        """Close the socket at once, without a goodbye to a server that may be gone."""
        self.fail_all(reason)
        if self._ear is None:
            if self._watch is not None:
                self._watch.close()  # or the server would have this end of the line still
            self.pgconn.finish()

    def fail_all(self, reason: str = LOST) -> None:
        """Fail all calls under way, and release the socket."""
        for talk in self._talks:
            talk.fail(reason)

    def _unanswered(self, talk: "Exchange[Any]", seconds: float) -> None:
        """Called twice a second: start the second look at the server when it is due."""
        look = self.second_look
        if look is not None and self._looking is None and seconds >= max(look.after, self._look_at):
            self._looking = asyncio.get_running_loop().create_task(self._look_twice(look, talk, seconds))

    async def _look_twice(self, look: SecondLook, talk: "Exchange[Any]", seconds: float) -> None:
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

    def send_ahead(self, message: PreparedMessage, take: Take | None) -> "Exchange[list[Row]]":
        """Send a pipelined call now; `reply` waits for its rows."""
        try:
            receiving = self.prepared_calls.send_ahead(message, take)
        except Error as fault:
            self.fail_all()  # the driver may have closed the socket
            receiving = _raising(fault)
        talk = self._begin(receiving)
        if talk is not self._talks[0] and not self.pgconn.is_busy():
            # To send this much, the driver has read replies: the socket does not report them again.
            asyncio.get_running_loop().call_soon(self._talks[0].read_on)
        return talk

    def _begin(self, gen: PQGen[T]) -> "Exchange[T]":
        """Run a generator of the driver: now, or when the last one has ended."""
        before = self._under_way() if self._talks else ()
        talk = Exchange(gen, self.pgconn, self._watched(), self._unanswered)
        self._look_at = 0.0
        self._talks = (*before, talk)
        if before:
            before[-1].next = talk
        else:
            talk.begin()
        return talk

    def _watched(self) -> SocketWatch:
        """The watch of its socket, in the loop that runs."""
        watch, loop = self._watch, asyncio.get_running_loop()
        if watch is None or not watch.is_of(loop):
            self._watch = watch = SocketWatch(loop)
        return watch

    async def reply(self, talk: "Exchange[T]") -> T:
        try:
            return await talk.ended
        except asyncio.CancelledError:
            # The server should not go on with an abandoned call; this is an attempt, without a guarantee.
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                with contextlib.suppress(Exception):
                    await self.cancel_safe(timeout=CANCEL_SECONDS_MAX)
            raise
        finally:
            talk.close()
            # It holds its reply, which may be large.
            self._talks = () if self._talks == (talk,) else self._under_way()

    def _under_way(self) -> "tuple[Exchange[Any], ...]":
        return tuple(talk for talk in self._talks if talk.is_under_way)


class ConnectionCutter:
    """Ends a connection from another thread, while its own thread may wait for the server.

    It duplicates the file descriptor: the original may be closed at any moment, and its number reused for
    another socket.
    """

    def __init__(self, conn: Connection[Any]) -> None:
        self._lock = threading.Lock()
        self._socket = socket.socket(fileno=os.dup(conn.fileno()))
        self.has_cut = False

    def cut(self) -> None:
        """End the wait for the server with an error; nothing more is sent."""
        self.has_cut = True
        with self._lock, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            self._socket.close()


class SyncPqConnection(WritableCheck, Connection[Any]):
    """The driver's connection, whose wait is cheap enough, with calls that need no cursor."""

    second_look: SecondLook | None = None
    lender: Any = None

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
        except Error:  # the known state of the hosts is outdated: ask again
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
        """The same steps, with a second look at the server after a long silence."""
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
        """The time of the next look; OperationalError if the connection has to leave the server."""
        reason, pause = look.judge(silent_for)
        if reason is not None and not is_readable(self.fileno()):
            look.hosts.leave(look.host)
            self.close()  # or a rollback would wait for the same server
            raise OperationalError(reason)
        return monotonic() + pause

    @cached_property
    def prepared_calls(self) -> PreparedCalls:
        """Calls without a cursor, on this connection."""
        return PreparedCalls(self)


_OF_THE_DRIVER: Final = ("autocommit", "prepare_threshold", "context", "row_factory", "cursor_factory")


def _hosts_and_options(conninfo: str, options: dict[str, Any]) -> tuple[Hosts, dict[str, Any]]:
    """The hosts of a DSN with its extra parameters, and the options that are for the driver."""
    parameters = {name: value for name, value in options.items() if name not in _OF_THE_DRIVER}
    hosts = hosts_of(make_conninfo(conninfo, **parameters) if parameters else conninfo)
    return hosts, {name: value for name, value in options.items() if name in _OF_THE_DRIVER}


def _admitted(look: SecondLook, row: Row | None) -> SecondLook:
    state = ServerState(*row) if row is not None else None
    if state is not None:
        look.hosts.admit(state)
    return look._replace(state=state)


def is_readable(fileno: int) -> bool:
    """Whether the socket has bytes to read."""
    poll = select.poll()  # select refuses descriptors past 1,023
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))


def _raising(fault: Error) -> PQGen[list[Row]]:
    yield from ()
    raise fault
