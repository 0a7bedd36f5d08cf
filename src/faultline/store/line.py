"""One lasting connection, for one coroutine at a time: what a worker's parts speak over."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryLoader

from faultline.errors import CannotConnect, ReadOnlyServer, ServerUnavailable
from faultline.store.call import Call, Row
from faultline.store.connect import aconnect
from faultline.store.faults import named_errors, was_swapped
from faultline.store.hosts import LOOK_AFTER_SECONDS
from faultline.store.lean import Heard, LeanConnection, Talk

T = TypeVar("T")


class Taker(Protocol):
    """Given a reply in the moment it comes, before whoever awaits it has its turn."""

    def take(self, rows: list[Row]) -> None: ...


CALL_SECONDS_MAX = 60.0
"""A call that is not answered by then is taken for lost: behind it may be a network that swallows."""

_NOT_NOW = ("40", "55P03", "57014", "58", "26000")
"""Deadlocks, lock and statement timeouts, an unreadable disk, a session that was told to forget what it had
prepared: true of this moment, not of the call."""


class Early:
    """A call that is put down before its time has come, and then sent by one word, from wherever that is.

    From there to the socket it is a small part of the way that an ordinary call goes. And it may be sent
    while another like it, or one with a taker, is under way: then it is carried out right behind that.
    """

    def __init__(self, line: "Line", conn: LeanConnection, call: Call[Any]) -> None:
        self._line = line
        self.conn = conn
        self._name = call.name
        self._message = conn.spoken.put_down(call)
        self._talk: Talk[list[Row]] | None = None

    @property
    def was_sent(self) -> bool:
        return self._talk is not None

    @property
    def is_under_way(self) -> bool:
        return self._talk is not None and not self._talk.ended.done()

    def send(self, taker: Taker | None = None) -> None:
        """Send it; when the line is not free, or is another by now, nothing is sent.

        Who takes the reply is told only now and is not kept: a claim and its early call would keep each
        other, and all their jobs, until the collector comes.
        """
        if self._line.lends(self, self.conn):
            self._talk = self.conn.say(self._message, None if taker is None else taker.take)

    async def reply(self) -> list[Row]:
        """What came of it; the errors are those of any other call."""
        return await self._line.hear_out(self, self._name, self._reply)

    async def _reply(self, conn: LeanConnection) -> list[Row]:
        assert self._talk is not None
        return await conn.reply(self._talk)

    async def ended(self) -> None:
        """Wait for its end, whatever that is."""
        if self._talk is not None:
            await asyncio.wait([self._talk.ended])


class Line:
    """Connects when it is first used, and again after it broke; the caller decides when to try again.

    CannotConnect means that nothing was sent; ServerUnavailable that the call may or may not have been
    carried out. ReadOnlyServer comes after a failover, from a server that was the primary: a new connection
    may find the new one.
    """

    def __init__(
        self,
        dsn: str,
        *,
        prepare: bool = True,
        raw_moments: bool = False,
        look_after: float = LOOK_AFTER_SECONDS,
    ) -> None:
        """With `raw_moments` a timestamp comes as the server's own count of microseconds since 2000.

        A call without an answer for `look_after` seconds gets a second look: see `faultline.store.hosts`.
        """
        self._look_after = look_after
        self.dsn = dsn
        self._raw_moments = raw_moments
        self._prepare = prepare
        self._conn: LeanConnection | None = None
        self._turn = asyncio.Lock()
        self._early: Early | None = None
        self._is_wanted = False
        """Somebody who speaks in the ordinary way waits for the end of what was sent early."""
        self._heard: Heard | None = None

    async def run(self, call: Call[T]) -> T:
        """Carry one call, in a transaction of its own."""
        return call.read(await self.fetch(call))

    async def run_in_line(self, call: Call[T]) -> T:
        """The same for a call that may be sent while others of its kind are under way: it comes next."""
        early = self.early(call)
        if early is not None:
            early.send()
            if early.was_sent:
                return call.read(await early.reply())
        return await self.run(call)

    async def fetch(self, call: Call[Any], taker: Taker | None = None) -> list[Row]:
        """Carry one call; the rows of its reply as they came."""
        return await self._talk(call.name, lambda conn: self._say(conn, call, taker))

    def early(self, call: Call[Any]) -> Early | None:
        """Put a call down, to be sent at once when its time comes; None where that cannot be done now."""
        if self._conn is None or not self._prepare:
            return None
        return Early(self, self._conn, call)

    def lends(self, early: Early, conn: LeanConnection) -> bool:
        """Whether an early call may speak over this connection now; if so, others wait for its end."""
        is_free = not self._turn.locked() and conn.pgconn.transaction_status == TransactionStatus.IDLE
        may_follow = conn.spoken.goes_in_line and not self._is_wanted
        if self._conn is not conn or conn.is_stale or not (is_free or may_follow):
            return False
        self._early = early
        return True

    async def hear_out(
        self, early: Early, name: str, reply: Callable[[LeanConnection], Awaitable[list[Row]]]
    ) -> list[Row]:
        try:
            return await self._talk(name, reply, early)
        finally:
            if self._early is early:
                self._early = None

    async def attend(self) -> None:
        """Be connected and hear wake-ups, also while there is nothing to carry."""
        if self._conn is None or not self._conn.listens:
            await self._talk("listen", _nothing)

    async def _say(self, conn: LeanConnection, call: Call[Any], taker: Taker | None) -> list[Row]:
        if self._prepare:
            if taker is None:
                return await conn.wait(conn.spoken.carry(call))
            return await conn.reply(conn.say(conn.spoken.put_down(call), taker.take))
        async with conn.cursor(binary=True) as cursor:
            rows = await (await cursor.execute(call.sql, call.args)).fetchall()
        if taker is not None:
            taker.take(rows)
        return rows

    async def _talk(
        self, name: str, say: Callable[[LeanConnection], Awaitable[T]], early: Early | None = None
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
                        return await say(conn)
            except TimeoutError as silence:
                await self._drop()
                raise ServerUnavailable(f"no answer to {name} in {CALL_SECONDS_MAX:.0f} s") from silence
            except psycopg.Error as fault:
                if is_of_this_moment(fault):
                    raise ServerUnavailable(f"the server could not do it now: {fault}") from fault
                raise
            except (ServerUnavailable, ReadOnlyServer, asyncio.CancelledError):
                # A cancelled call may have been cut in the middle of its reply: never reuse that connection.
                await self._drop()
                raise

    async def _until_free(self) -> None:
        """Those that were sent early come to their end, and no others are sent behind them meanwhile."""
        self._is_wanted = True
        try:
            while self._early is not None and self._early.is_under_way:
                await self._early.ended()
        finally:
            self._is_wanted = False

    async def _connect(self) -> LeanConnection:
        conn = await aconnect(
            self.dsn, LeanConnection, prepare_threshold=None, look_after=self._look_after,
            silent_max=CALL_SECONDS_MAX,
        )  # fmt: skip
        if self._raw_moments:
            # A timestamp is an eight byte integer on the wire; making a datetime of it took longer than
            # reading the rest of a job.
            conn.adapters.register_loader("timestamptz", Int8BinaryLoader)
        self._conn = conn
        return conn

    def tell(self, heard: Heard) -> None:
        """Have wake-ups told to somebody, from the next call on: they come over this connection as well.

        A session that has just been woken to pass one on is awake for the claim that follows it.
        """
        self._heard = heard

    def look(self) -> None:
        """See whether the connection is still there while nobody uses it."""
        if self._conn is not None:
            self._conn.look()

    def _lost(self) -> None:
        """It broke while nobody used it; told that nothing can be heard now, somebody soon makes another."""
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


async def _nothing(conn: LeanConnection) -> None:
    """There is nothing to say."""


def is_of_this_moment(fault: psycopg.Error) -> bool:
    """Whether the same call may well succeed in a moment."""
    return (fault.sqlstate or "").startswith(_NOT_NOW) or was_swapped(fault)


OUTAGE = (CannotConnect, ServerUnavailable, ReadOnlyServer)
"""What a worker waits out instead of dying of it."""
