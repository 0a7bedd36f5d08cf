"""Connections for async code: as `plain_pool.py`, and clients that share them may take turns."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from time import monotonic
from types import TracebackType

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from faultline.store.connection_turns import ConnectionSlot, ConnectionTurns
from faultline.store.driver.async_connection import AsyncPqConnection
from faultline.store.driver.connect import (
    acheck_lent,
    acheck_server,
    aconnect,
    conninfo,
)
from faultline.store.driver.resetting import (
    IDLE_SECONDS,
    SEND_AFTER_SECONDS,
    ConnectionsBeingReset,
    read_the_rest,
    read_what_came,
    start_reset,
)
from faultline.store.driver.sqlstate import named_errors
from faultline.store.pool.pool_settings import (
    POOL_MAX,
    POOL_TRY_SECONDS,
    POOL_WAIT_SECONDS,
    SPARE_SECONDS_MAX,
    connection_options,
    in_use_of,
    none_came_free,
)
from faultline.store.servers.read_only import LastLeft, refused_by_server
from faultline.telemetry.pool_logs import pool_name


class AsyncPool:
    """A pool of connections for one event loop. The first that is borrowed opens it.

    With `turns`, many clients share the connections: see `faultline.store.connection_turns`.
    """

    def __init__(
        self,
        dsn: str,
        *,
        prepare: bool | None = None,
        connections_max: int = POOL_MAX,
        turns: ConnectionTurns | None = None,
    ) -> None:
        self.dsn = dsn
        self._prepare = prepare
        self._connections_max = connections_max
        self._pool: AsyncConnectionPool[AsyncPqConnection] | None = None
        self._turns = turns
        self._left = LastLeft()
        self._being_reset: ConnectionsBeingReset[AsyncPqConnection] = ConnectionsBeingReset()
        self._sweeper: asyncio.Task[None] | None = None
        self._sends_resets = False
        self._spare: list[AsyncPqConnection] = []
        """At most one, with nothing to be read from it."""

    @property
    def listens(self) -> bool:
        """Whether LISTEN works: not with a pooler that gives each transaction another session.

        Known after the first call.
        """
        return self._prepare is not False

    def connection(self) -> AbstractAsyncContextManager[AsyncPqConnection]:
        """A connection of the pool, in autocommit mode."""
        return self._borrowed(POOL_WAIT_SECONDS)

    def _borrowed(self, wait: float) -> "_Loan":
        return _Loan(self, wait)

    async def borrow(self, wait: float = POOL_WAIT_SECONDS, *, resets: bool = False) -> AsyncPqConnection:
        """The same without a block, and without turns: `give_back` ends it.

        A caller that `resets` sends what is due by itself, with its BEGIN.
        """
        pool = self._pool or await self._open()
        with named_errors():
            conn = (await self._lend_spare(pool) if self._spare else None) or await self._lend(
                pool, wait, resets
            )
        conn.lender = pool
        return conn

    async def _lend_spare(self, pool: AsyncConnectionPool[AsyncPqConnection]) -> AsyncPqConnection | None:
        """The spare connection, after what a pool looks at before it lends one; None if that refuses it."""
        conn, is_usable = self._spare.pop(), False
        try:
            await acheck_lent(self._left, conn)
            is_usable = True
        except psycopg.Error:
            await conn.close()
        finally:
            if not is_usable:  # as the pool does with its own: `putconn` would log a warning
                await pool._putconn(conn, from_getconn=True)
        return conn if is_usable else None

    def _keep_spare(self, conn: AsyncPqConnection, pool: AsyncConnectionPool[AsyncPqConnection]) -> bool:
        """Whether it is kept for the next caller: the way through the pool costs a call a fifth of its CPU.

        Not where a caller waits in the pool, and not when it is old enough for the pool to replace it. Nor
        soon after a server was left: the pool has to lend each of its connections once, to find the old ones.
        """
        if (
            self._spare
            or self._being_reset.borrowers
            or pool is not self._pool
            or conn.refuses_writes
            or self._left.is_recent
            or conn.pgconn.transaction_status != TransactionStatus.IDLE
            or monotonic() - conn.made_at > SPARE_SECONDS_MAX
        ):
            return False
        self._spare.append(conn)
        return True

    async def _return_spare(self, pool: AsyncConnectionPool[AsyncPqConnection]) -> None:
        while self._spare:
            await pool.putconn(self._spare.pop())

    async def give_back(self, conn: AsyncPqConnection, reset: bytes | None = None) -> None:
        """Return a connection, whose session is first made as new by the statements of `reset`, if given.

        They are sent with the next BEGIN on it, or after a millisecond. Their reply is not waited for: the
        next borrower reads it first.
        """
        pool, conn.lender = conn.lender, None
        try:
            if self._left.leave_with(conn):
                if reset is not None:
                    await conn.close()
                for other in self._being_reset.take_all():
                    await other.close()
                    await pool.putconn(other)
                await self._return_spare(pool)
                await pool.drain()
            elif reset is not None and pool is self._pool and not self._being_reset.borrowers:
                conn.reset_due = reset
                self._being_reset.add(conn)
                self._send_resets_soon()
                self._look_for_idle_ones()
                return
            elif reset is not None:
                if pool is self._pool and start_reset(conn, reset):
                    await self._read_reset(conn)
                else:
                    await conn.close()
            elif self._keep_spare(conn, pool):
                return
        except BaseException:
            await pool.putconn(conn)
            raise
        await pool.putconn(conn)

    def _send_resets_soon(self) -> None:
        if not self._sends_resets:
            self._sends_resets = True
            asyncio.get_running_loop().call_later(SEND_AFTER_SECONDS, self._send_resets)

    def _send_resets(self) -> None:
        """What a handler left, its lock above all, does not stay while no other one needs the session."""
        self._sends_resets = False
        for conn in self._being_reset.all_due():
            statements = conn.take_reset()
            if statements is not None and not start_reset(conn, statements):
                conn.hang_up()  # the next borrower finds it closed

    def _look_for_idle_ones(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def _sweep(self) -> None:
        while self._being_reset:
            await asyncio.sleep(IDLE_SECONDS)
            while (conn := self._being_reset.take_idle()) is not None:
                await self._is_usable(conn)
                if self._pool is not None:
                    await self._pool.putconn(conn)
        self._sweeper = None

    @staticmethod
    async def _read_reset(conn: AsyncPqConnection) -> bool:
        """Read the reply to a reset; False, and closed, if the session is not as new."""
        is_as_new: bool | None = False
        try:
            is_as_new = read_what_came(conn.pgconn)
            if is_as_new is None:
                is_as_new = await conn.wait(read_the_rest(conn.pgconn))
        except psycopg.Error:
            is_as_new = False
        finally:  # a job that is stopped just now must leave no connection half read
            if not is_as_new:
                await conn.close()
        return bool(is_as_new)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncPqConnection]:
        """A transaction on a connection of the pool, unless its server has turned read-only."""
        for is_last in (False, True):
            async with self.connection() as conn:
                with named_errors():
                    async with conn.transaction():
                        if is_last or not conn.has_turned:
                            yield conn
                            return

    async def _is_usable(self, conn: AsyncPqConnection, resets: bool = False) -> bool:
        """What a pool looks at before it lends a connection, and the reply to the reset."""
        try:
            await acheck_lent(self._left, conn)
        except psycopg.Error:
            await conn.close()
            return False
        if conn.reset_due is None:
            return await self._read_reset(conn)
        if resets:
            return True
        if not start_reset(conn, conn.take_reset() or b""):
            await conn.close()
            return False
        return await self._read_reset(conn)

    async def _lend(
        self, pool: AsyncConnectionPool[AsyncPqConnection], wait: float, resets: bool
    ) -> AsyncPqConnection:
        until = monotonic() + wait
        while True:
            while (conn := self._being_reset.take()) is not None:
                is_usable = False
                try:
                    is_usable = await self._is_usable(conn, resets)
                finally:
                    if not is_usable:
                        await pool.putconn(conn)
                if is_usable:
                    return conn
            try:
                with self._being_reset.another():
                    return await pool.getconn(POOL_TRY_SECONDS)
            except PoolTimeout:
                if monotonic() >= until:
                    raise PoolTimeout(none_came_free(wait)) from None

    async def _open(self) -> AsyncConnectionPool[AsyncPqConnection]:
        if self._pool is None:
            async with await aconnect(self.dsn) as conn:
                pooled = await acheck_server(conn)
            if self._prepare is None:
                self._prepare = not pooled
            if self._pool is None:  # another coroutine may have opened it during the check
                pool: AsyncConnectionPool[AsyncPqConnection] = AsyncConnectionPool(
                    conninfo(self.dsn), connection_class=AsyncPqConnection,
                    kwargs=connection_options(self._prepare), min_size=1, max_size=self._connections_max,
                    reconnect_timeout=POOL_TRY_SECONDS, name=pool_name(),
                    check=partial(acheck_lent, self._left), open=False,
                )  # fmt: skip
                self._pool = pool
                await pool.open()
        return self._pool

    def in_use(self) -> tuple[int, int]:
        """How many connections the pool has, and how many of them are lent."""
        return in_use_of(self._pool, len(self._being_reset) + len(self._spare))

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            if self._sweeper is not None:
                self._sweeper.cancel()
                self._sweeper = None
            for conn in self._being_reset.take_all():
                await conn.close()
                await pool.putconn(conn)
            await self._return_spare(pool)
            await pool.close()


class _Loan:
    """A connection for the time of a block. As a generator it would cost each call 5 us more."""

    __slots__ = ("_conn", "_place", "_pool", "_wait")

    def __init__(self, pool: AsyncPool, wait: float) -> None:
        self._pool = pool
        self._wait = wait
        self._place: ConnectionSlot | None = None

    async def __aenter__(self) -> AsyncPqConnection:
        turns = self._pool._turns
        if turns is not None:
            self._place = await _place(turns)
        try:
            self._conn = await self._pool.borrow(self._wait)
        except BaseException:
            self._leave_place()
            raise
        return self._conn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                self._conn.refuses_writes |= refused_by_server(error)
            await self._pool.give_back(self._conn)
        finally:
            self._leave_place()

    def _leave_place(self) -> None:
        if self._place is not None:
            self._place.give_back()


async def _place(turns: ConnectionTurns) -> ConnectionSlot:
    with named_errors():
        try:
            return await turns.take()
        except TimeoutError:
            raise PoolTimeout(none_came_free()) from None
