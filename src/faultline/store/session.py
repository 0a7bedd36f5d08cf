"""One lasting connection for the parts of a worker, one coroutine at a time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryLoader

from faultline.errors import CannotConnect, ReadOnlyServer, ServerUnavailable
from faultline.store.call import Call, Row
from faultline.store.driver.async_connection import AsyncPqConnection, Heard
from faultline.store.driver.connect import aconnect
from faultline.store.driver.exchange import Exchange
from faultline.store.driver.sqlstate import named_errors, was_swapped
from faultline.store.servers.hosts import LOOK_AFTER_SECONDS

T = TypeVar("T")


class ReplyHandler(Protocol):
    """Called with a reply as soon as it comes, before the awaiting coroutine runs."""

    def take(self, rows: list[Row]) -> None: ...


CALL_SECONDS_MAX = 60.0
"""A call without an answer for this long counts as lost: a network may drop packets silently."""

_NOT_NOW = ("40", "55P03", "57014", "58", "26000")
"""Deadlocks, lock and statement timeouts, an unreadable disk, a session that lost its prepared statements:
temporary errors, which the call did not cause."""


class PipelinedCall:
    """A call that is encoded in advance, so that `send` only has to write it to the socket.

    It may be sent while another pipelined call, or one with a taker, is under way: the server then runs it
    directly after that one.
    """

    def __init__(self, line: "DbSession", conn: AsyncPqConnection, call: Call[Any]) -> None:
        self._line = line
        self.conn = conn
        self._name = call.name
        self._message = conn.prepared_calls.prepare(call)
        self._talk: Exchange[list[Row]] | None = None

    @property
    def was_sent(self) -> bool:
        return self._talk is not None

    @property
    def is_under_way(self) -> bool:
        return self._talk is not None and not self._talk.ended.done()

    def send(self, taker: ReplyHandler | None = None) -> None:
        """Send it; nothing is sent if the connection is busy, or is a new one.

        The taker is given here and not stored: a claim and its early call would keep each other, and all
        their jobs, alive until the next garbage collection.
        """
        if self._line.lends(self, self.conn):
            self._talk = self.conn.send_ahead(self._message, None if taker is None else taker.take)

    async def reply(self) -> list[Row]:
        """The rows of the reply; the errors are those of any other call."""
        return await self._line.finish(self, self._name, self._reply)

    async def _reply(self, conn: AsyncPqConnection) -> list[Row]:
        assert self._talk is not None
        return await conn.reply(self._talk)

    async def ended(self) -> None:
        """Wait until the call ends, with a reply or an error."""
        if self._talk is not None:
            await asyncio.wait([self._talk.ended])


class DbSession:
    """Connects at its first use, and again after it broke; the caller decides when to try again.

    CannotConnect means that nothing was sent; ServerUnavailable means that the call may or may not have run.
    ReadOnlyServer comes from a former primary after a failover: a new connection may find the new primary.
    """

    def __init__(
        self,
        dsn: str,
        *,
        prepare: bool = True,
        raw_moments: bool = False,
        look_after: float = LOOK_AFTER_SECONDS,
    ) -> None:
        """With `raw_moments`, a timestamp is the server's count of microseconds since 2000.

        A call without an answer for `look_after` seconds gets a second look: see `store/servers/hosts.py`.
        """
        self._look_after = look_after
        self.dsn = dsn
        self._raw_moments = raw_moments
        self._prepare = prepare
        self._conn: AsyncPqConnection | None = None
        self._turn = asyncio.Lock()
        self._early: PipelinedCall | None = None
        self._is_wanted = False
        """An ordinary call waits for the end of the pipelined calls."""
        self._heard: Heard | None = None

    async def run(self, call: Call[T]) -> T:
        """Run one call in its own transaction."""
        return call.read(await self.fetch(call))

    async def run_in_line(self, call: Call[T]) -> T:
        """The same for a call that may be pipelined behind others."""
        early = self.early(call)
        if early is not None:
            early.send()
            if early.was_sent:
                return call.read(await early.reply())
        return await self.run(call)

    async def fetch(self, call: Call[Any], taker: ReplyHandler | None = None) -> list[Row]:
        """Run one call; returns the raw rows of its reply."""
        return await self._talk(call.name, lambda conn: self._send(conn, call, taker))

    def early(self, call: Call[Any]) -> PipelinedCall | None:
        """Encode a call in advance, to be sent later at once; None if that is not possible now."""
        if self._conn is None or not self._prepare:
            return None
        return PipelinedCall(self, self._conn, call)

    def lends(self, early: PipelinedCall, conn: AsyncPqConnection) -> bool:
        """Whether an early call may use this connection now; if so, others wait for its end."""
        is_free = not self._turn.locked() and conn.pgconn.transaction_status == TransactionStatus.IDLE
        may_follow = conn.prepared_calls.goes_in_line and not self._is_wanted
        if self._conn is not conn or conn.is_stale or not (is_free or may_follow):
            return False
        self._early = early
        return True

    async def finish(
        self, early: PipelinedCall, name: str, reply: Callable[[AsyncPqConnection], Awaitable[list[Row]]]
    ) -> list[Row]:
        try:
            return await self._talk(name, reply, early)
        finally:
            if self._early is early:
                self._early = None

    async def attend(self) -> None:
        """Connect and listen for wake-ups, also while there are no calls."""
        if self._conn is None or not self._conn.listens:
            await self._talk("listen", _nothing)

    async def _send(self, conn: AsyncPqConnection, call: Call[Any], taker: ReplyHandler | None) -> list[Row]:
        if self._prepare:
            if taker is None:
                return await conn.wait(conn.prepared_calls.carry(call))
            return await conn.reply(conn.send_ahead(conn.prepared_calls.prepare(call), taker.take))
        async with conn.cursor(binary=True) as cursor:
            rows = await (await cursor.execute(call.sql, call.args)).fetchall()
        if taker is not None:
            taker.take(rows)
        return rows

    async def _talk(
        self, name: str, send: Callable[[AsyncPqConnection], Awaitable[T]], early: PipelinedCall | None = None
    ) -> T:
        async with self._turn:
            if early is not None and self._conn is not early.conn:
                raise ServerUnavailable(f"the connection broke while {name} was on its way")
            if self._conn is not None and self._conn.is_stale:
                await self._drop()
            conn = self._conn or await self._connect()
            try:
                async with asyncio.timeout(CALL_SECONDS_MAX):
                    with named_errors():
                        if early is None:
                            await self._until_free()
                        if self._heard is not None and not conn.listens:
                            await conn.listen(self._heard, self._lost)
                        return await send(conn)
            except TimeoutError as silence:
                await self._drop()
                raise ServerUnavailable(f"no answer to {name} in {CALL_SECONDS_MAX:.0f} s") from silence
            except psycopg.Error as fault:
                if is_of_this_moment(fault):
                    raise ServerUnavailable(f"the server could not do it now: {fault}") from fault
                raise
            except (ServerUnavailable, ReadOnlyServer, asyncio.CancelledError):
                # A cancelled call may have stopped in the middle of its reply: never reuse that connection.
                await self._drop()
                raise

    async def _until_free(self) -> None:
        """Wait until the pipelined calls have ended; no others are sent behind them meanwhile."""
        self._is_wanted = True
        try:
            while self._early is not None and self._early.is_under_way:
                await self._early.ended()
        finally:
            self._is_wanted = False

    async def _connect(self) -> AsyncPqConnection:
        conn = await aconnect(
            self.dsn, AsyncPqConnection, prepare_threshold=None, look_after=self._look_after,
            silent_max=CALL_SECONDS_MAX,
        )  # fmt: skip
        if self._raw_moments:
            # A timestamp is an eight-byte integer on the wire. Making a datetime takes longer than reading
            # the rest of a job.
            conn.adapters.register_loader("timestamptz", Int8BinaryLoader)
        self._conn = conn
        return conn

    def tell(self, heard: Heard) -> None:
        """Report wake-ups to `heard` from the next call on: they come over the same connection.

        The server process that has just sent a wake-up is awake for the claim that follows.
        """
        self._heard = heard

    def look(self) -> None:
        """Check whether the idle connection is still there."""
        if self._conn is not None:
            self._conn.look()

    def _lost(self) -> None:
        """The idle connection broke: `heard(None)` reports it, and the listener makes a new one."""
        if self._conn is not None:
            self._conn.pgconn.finish()
        self._conn = None
        if self._heard is not None:
            self._heard(None)

    async def _drop(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):
                await conn.close()
            if self._heard is not None:
                self._heard(None)

    async def close(self) -> None:
        await self._drop()


async def _nothing(conn: AsyncPqConnection) -> None:
    """Send nothing."""


def is_of_this_moment(fault: psycopg.Error) -> bool:
    """Whether the same call may succeed soon."""
    return (fault.sqlstate or "").startswith(_NOT_NOW) or was_swapped(fault)


OUTAGE = (CannotConnect, ServerUnavailable, ReadOnlyServer)
"""Errors after which a worker waits and tries again."""
