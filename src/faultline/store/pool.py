"""Store and AsyncStore: run a Call over a connection pool, or over the caller's own connection."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from threading import Lock, Timer
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.errors import InternalError_
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from faultline.errors import CannotConnect, DatabaseError, ReadOnlyServer
from faultline.store.call import Call
from faultline.store.connection_turns import ConnectionSlot, ConnectionTurns
from faultline.store.driver.arrays import register_types
from faultline.store.driver.async_connection import AsyncPqConnection, SyncPqConnection
from faultline.store.driver.connect import (
    acheck_lent,
    acheck_server,
    aconnect,
    check_lent,
    check_server,
    connect,
    conninfo,
)
from faultline.store.driver.loaders import register_raw_types
from faultline.store.driver.resetting import (
    IDLE_SECONDS,
    ConnectionsBeingReset,
    read_the_rest,
    read_what_came,
    start_reset,
)
from faultline.store.driver.sqlstate import named_errors, was_swapped
from faultline.store.servers.read_only import LastLeft, refused_by_server
from faultline.telemetry.pool_logs import pool_name

T = TypeVar("T")

POOL_MAX = 8
SWAPS_MAX = 3
"""How often a call is repeated when a migration replaces the functions at the same time."""

AHEAD_MAX = 2
"""Calls sent ahead of the one whose reply is read: enough to keep the server busy, with little memory."""

POOL_WAIT_SECONDS = 10.0
SECOND_TRY_SECONDS = 4.0
"""How long a second try waits for a connection: the first may have taken ten of the fifteen seconds."""

# By default a pool tries again after 1, 2, 4 ... 128 seconds, and would notice a server's return late.
# So it gives up after a second, and a call that still waits asks again: that starts the next try.
POOL_TRY_SECONDS = 1.0


def _none_came_free(seconds: float | None = None) -> str:
    waited = POOL_WAIT_SECONDS if seconds is None else seconds
    return f"none came free in {waited:.0f} s; the server is away, or all of them are in use"


class Store:
    """Runs calls for synchronous code. The first call that needs a connection makes it."""

    def __init__(self, dsn: str, *, prepare: bool | None = None, connections_max: int = POOL_MAX) -> None:
        """Without `prepare`, the first connection finds out whether a pooler is in between."""
        self.dsn = dsn
        self._prepare = prepare
        self._connections_max = connections_max
        self._pool: ConnectionPool[SyncPqConnection] | None = None
        self._opening = Lock()
        self._left = LastLeft()
        self._being_reset: ConnectionsBeingReset[SyncPqConnection] = ConnectionsBeingReset()
        self._sweeper: Timer | None = None

    def run(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Run one call in its own transaction; a hint, if given, directly after its commit.

        If the server has turned read-only, nothing was written: the call is tried once more, over a new
        connection.
        """
        try:
            return self._run(POOL_WAIT_SECONDS, call, hint)
        except ReadOnlyServer as refused:
            try:
                return self._run(POOL_WAIT_SECONDS, call, hint)
            except CannotConnect as away:  # no other server yet: the first error is the answer
                raise refused from away

    def run_again(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Repeat a call that got no answer; the wait for a connection is shorter, since time has passed."""
        return self._run(SECOND_TRY_SECONDS, call, hint)

    def _run(self, wait: float, call: Call[T], hint: Call[Any] | None) -> T:
        with self._borrowed(wait) as conn:
            for _ in range(SWAPS_MAX):
                try:
                    return self._carry(conn, call, hint)
                except InternalError_ as fault:
                    if not was_swapped(fault):
                        raise
            return self._carry(conn, call, hint)

    def _carry(self, conn: SyncPqConnection, call: Call[T], hint: Call[Any] | None) -> T:
        if self._prepare:
            with named_errors():
                return call.read(conn.wait(conn.spoken.carry(call, hint)))
        answer = self.run_in(conn, call)
        if hint is not None:
            with suppress(psycopg.Error, DatabaseError):
                self.run_in(conn, hint)
        return answer

    @staticmethod
    def run_in(conn: Connection[Any], call: Call[T]) -> T:
        """Run one call in the caller's own transaction."""
        register_types(conn)
        with named_errors(), conn.cursor(binary=True, row_factory=tuple_row) as cursor:
            register_raw_types(cursor.adapters, call)
            return call.read(cursor.execute(call.sql, call.args).fetchall())

    @staticmethod
    def run_each(conn: Connection[Any], calls: Iterable[Call[T]]) -> Iterator[T]:
        """Run many calls in the caller's own transaction; the next is made while the server runs the last."""
        register_types(conn)
        waiting: deque[tuple[Call[T], Cursor[Any]]] = deque()
        with named_errors(), conn.pipeline():
            for call in calls:
                cursor = conn.cursor(binary=True, row_factory=tuple_row)
                waiting.append((call, cursor.execute(call.sql, call.args)))
                _ask_for_the_reply(conn)
                if len(waiting) > AHEAD_MAX:
                    yield _read(*waiting.popleft())
            while waiting:
                yield _read(*waiting.popleft())

    def connection(self) -> AbstractContextManager[SyncPqConnection]:
        """A connection of the pool, in autocommit mode."""
        return self._borrowed(POOL_WAIT_SECONDS)

    @contextmanager
    def _borrowed(self, wait: float) -> Iterator[SyncPqConnection]:
        conn = self.borrow(wait)
        try:
            yield conn
        except BaseException as error:
            conn.refuses_writes |= refused_by_server(error)
            raise
        finally:
            self.give_back(conn)

    def borrow(self, wait: float = POOL_WAIT_SECONDS) -> SyncPqConnection:
        """The same without a block: `give_back` ends it."""
        pool = self._open()
        with named_errors():
            conn = self._lend(pool, wait)
        conn.lender = pool
        return conn

    def give_back(self, conn: SyncPqConnection, reset: bytes | None = None) -> None:
        """Return a connection, whose session is first made as new by the statements of `reset`, if given.

        The reply is not waited for: the next borrower reads it first.
        """
        pool, conn.lender = conn.lender, None
        if self._left.leave_with(conn):
            if reset is not None:
                conn.close()
            for other in self._being_reset.take_all():
                other.close()
                pool.putconn(other)
            pool.drain()  # the other connections belong to the same server
        elif reset is not None and pool is self._pool and start_reset(conn, reset):
            if not self._being_reset.borrowers:
                self._being_reset.add(conn)
                self._look_for_idle_ones()
                return
            self._read_reset(conn)
        elif reset is not None:
            conn.close()
        pool.putconn(conn)

    def _look_for_idle_ones(self) -> None:
        """In a thread, a while from now."""
        if self._sweeper is None:
            self._sweeper = Timer(IDLE_SECONDS, self._sweep)
            self._sweeper.daemon = True
            self._sweeper.start()

    def _sweep(self) -> None:
        self._sweeper = None
        while (conn := self._being_reset.take_idle()) is not None:
            pool = self._pool
            if pool is None:
                conn.close()
            else:
                self._is_usable(conn)
                pool.putconn(conn)
        if self._being_reset:
            self._look_for_idle_ones()

    @staticmethod
    def _read_reset(conn: SyncPqConnection) -> bool:
        """Read the reply to a reset; False, and closed, if the session is not as new."""
        is_as_new: bool | None = False
        try:
            is_as_new = read_what_came(conn.pgconn)
            if is_as_new is None:
                is_as_new = conn.wait(read_the_rest(conn.pgconn))
        except psycopg.Error:
            is_as_new = False
        finally:
            if not is_as_new:
                conn.close()
        return bool(is_as_new)

    @contextmanager
    def transaction(self) -> Iterator[SyncPqConnection]:
        """A transaction on a connection of the pool, unless its server has turned read-only."""
        for is_last in (False, True):
            with self.connection() as conn, named_errors(), conn.transaction():
                if is_last or not conn.has_turned:  # known from the reply to BEGIN
                    yield conn
                    return

    def _is_usable(self, conn: SyncPqConnection) -> bool:
        """What a pool looks at before it lends a connection, and the reply to the reset."""
        try:
            check_lent(self._left, conn)
        except psycopg.Error:
            conn.close()
            return False
        return self._read_reset(conn)

    def _lend(self, pool: ConnectionPool[SyncPqConnection], wait: float) -> SyncPqConnection:
        until = monotonic() + wait
        while True:
            while (conn := self._being_reset.take()) is not None:
                if self._is_usable(conn):
                    return conn
                pool.putconn(conn)
            try:
                with self._being_reset.another():
                    return pool.getconn(POOL_TRY_SECONDS)
            except PoolTimeout:
                if monotonic() >= until:
                    raise PoolTimeout(_none_came_free(wait)) from None

    def _open(self) -> ConnectionPool[SyncPqConnection]:
        if self._pool is not None:
            return self._pool
        # If the first thread cannot connect, the waiting threads do not each try for as long after it.
        if not self._opening.acquire(timeout=POOL_WAIT_SECONDS):
            raise CannotConnect(f"no connection to the database within the time allowed: {_none_came_free()}")
        try:
            if self._pool is None:
                # A separate first connection: a pool that cannot connect only reports that it waited.
                with connect(self.dsn) as conn:
                    pooled = check_server(conn)
                if self._prepare is None:
                    self._prepare = not pooled
                self._pool = ConnectionPool(
                    conninfo(self.dsn), connection_class=SyncPqConnection, kwargs=_options(self._prepare),
                    min_size=1, max_size=self._connections_max,
                    reconnect_timeout=POOL_TRY_SECONDS, name=pool_name(),
                    check=partial(check_lent, self._left), open=True,
                )  # fmt: skip
            return self._pool
        finally:
            self._opening.release()

    def in_use(self) -> tuple[int, int]:
        """How many connections the pool has, and how many of them are lent."""
        return _in_use(self._pool, self._being_reset)

    def close(self) -> None:
        with self._opening:
            if self._pool is not None:
                if self._sweeper is not None:
                    self._sweeper.cancel()
                for conn in self._being_reset.take_all():
                    conn.close()
                    self._pool.putconn(conn)
                self._pool.close()
                self._pool = None


class AsyncStore:
    """Runs calls for async code. The first call that needs a connection makes it.

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

    @property
    def listens(self) -> bool:
        """Whether LISTEN works: not with a pooler that gives each transaction another session.

        Known after the first call.
        """
        return self._prepare is not False

    async def run(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Run one call in its own transaction; a hint, if given, directly after its commit.

        If the server has turned read-only, nothing was written: the call is tried once more, over a new
        connection.
        """
        try:
            return await self._run(POOL_WAIT_SECONDS, call, hint)
        except ReadOnlyServer as refused:
            try:
                return await self._run(POOL_WAIT_SECONDS, call, hint)
            except CannotConnect as away:
                raise refused from away

    async def run_again(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Repeat a call that got no answer; the wait for a connection is shorter, since time has passed."""
        return await self._run(SECOND_TRY_SECONDS, call, hint)

    async def _run(self, wait: float, call: Call[T], hint: Call[Any] | None) -> T:
        async with self._borrowed(wait) as conn:
            for _ in range(SWAPS_MAX):
                try:
                    return await self._carry(conn, call, hint)
                except InternalError_ as fault:
                    if not was_swapped(fault):
                        raise
            return await self._carry(conn, call, hint)

    async def _carry(self, conn: AsyncPqConnection, call: Call[T], hint: Call[Any] | None) -> T:
        if self._prepare:
            with named_errors():
                return call.read(await conn.wait(conn.spoken.carry(call, hint)))
        answer = await self.run_in(conn, call)
        if hint is not None:
            with suppress(psycopg.Error, DatabaseError):
                await self.run_in(conn, hint)
        return answer

    @staticmethod
    async def run_in(conn: AsyncConnection[Any], call: Call[T]) -> T:
        """Run one call in the caller's own transaction."""
        register_types(conn)
        with named_errors():
            async with conn.cursor(binary=True, row_factory=tuple_row) as cursor:
                register_raw_types(cursor.adapters, call)
                await cursor.execute(call.sql, call.args)
                return call.read(await cursor.fetchall())

    @staticmethod
    async def run_each(conn: AsyncConnection[Any], calls: Iterable[Call[T]]) -> AsyncIterator[T]:
        """Run many calls in the caller's own transaction; the next is made while the server runs the last."""
        register_types(conn)
        waiting: deque[tuple[Call[T], AsyncCursor[Any]]] = deque()
        with named_errors():
            async with conn.pipeline():
                for call in calls:
                    cursor = conn.cursor(binary=True, row_factory=tuple_row)
                    waiting.append((call, await cursor.execute(call.sql, call.args)))
                    _ask_for_the_reply(conn)
                    if len(waiting) > AHEAD_MAX:
                        yield await _aread(*waiting.popleft())
                while waiting:
                    yield await _aread(*waiting.popleft())

    def connection(self) -> AbstractAsyncContextManager[AsyncPqConnection]:
        """A connection of the pool, in autocommit mode."""
        return self._borrowed(POOL_WAIT_SECONDS)

    @asynccontextmanager
    async def _borrowed(self, wait: float) -> AsyncIterator[AsyncPqConnection]:
        place = None if self._turns is None else await _place(self._turns)
        try:
            conn = await self.borrow(wait)
            try:
                yield conn
            except BaseException as error:
                conn.refuses_writes |= refused_by_server(error)
                raise
            finally:
                await self.give_back(conn)
        finally:
            if place is not None:
                place.give_back()

    async def borrow(self, wait: float = POOL_WAIT_SECONDS) -> AsyncPqConnection:
        """The same without a block, and without turns: `give_back` ends it."""
        pool = await self._open()
        with named_errors():
            conn = await self._lend(pool, wait)
        conn.lender = pool
        return conn

    async def give_back(self, conn: AsyncPqConnection, reset: bytes | None = None) -> None:
        """Return a connection, whose session is first made as new by the statements of `reset`, if given.

        The reply is not waited for: the next borrower reads it first.
        """
        pool, conn.lender = conn.lender, None
        try:
            if self._left.leave_with(conn):
                if reset is not None:
                    await conn.close()
                for other in self._being_reset.take_all():
                    await other.close()
                    await pool.putconn(other)
                await pool.drain()
            elif reset is not None and pool is self._pool and start_reset(conn, reset):
                if not self._being_reset.borrowers:
                    self._being_reset.add(conn)
                    self._look_for_idle_ones()
                    return
                await self._read_reset(conn)
            elif reset is not None:
                await conn.close()
        except BaseException:
            await pool.putconn(conn)
            raise
        await pool.putconn(conn)

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

    async def _is_usable(self, conn: AsyncPqConnection) -> bool:
        """What a pool looks at before it lends a connection, and the reply to the reset."""
        try:
            await acheck_lent(self._left, conn)
        except psycopg.Error:
            await conn.close()
            return False
        return await self._read_reset(conn)

    async def _lend(self, pool: AsyncConnectionPool[AsyncPqConnection], wait: float) -> AsyncPqConnection:
        until = monotonic() + wait
        while True:
            while (conn := self._being_reset.take()) is not None:
                is_usable = False
                try:
                    is_usable = await self._is_usable(conn)
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
                    raise PoolTimeout(_none_came_free(wait)) from None

    async def _open(self) -> AsyncConnectionPool[AsyncPqConnection]:
        if self._pool is None:
            async with await aconnect(self.dsn) as conn:
                pooled = await acheck_server(conn)
            if self._prepare is None:
                self._prepare = not pooled
            if self._pool is None:  # another coroutine may have opened it during the check
                pool: AsyncConnectionPool[AsyncPqConnection] = AsyncConnectionPool(
                    conninfo(self.dsn), connection_class=AsyncPqConnection, kwargs=_options(self._prepare),
                    min_size=1, max_size=self._connections_max,
                    reconnect_timeout=POOL_TRY_SECONDS, name=pool_name(),
                    check=partial(acheck_lent, self._left), open=False,
                )  # fmt: skip
                self._pool = pool
                await pool.open()
        return self._pool

    def in_use(self) -> tuple[int, int]:
        """How many connections the pool has, and how many of them are lent."""
        return _in_use(self._pool, self._being_reset)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            if self._sweeper is not None:
                self._sweeper.cancel()
                self._sweeper = None
            for conn in self._being_reset.take_all():
                await conn.close()
                await pool.putconn(conn)
            await pool.close()


async def _place(turns: ConnectionTurns) -> ConnectionSlot:
    with named_errors():
        try:
            return await turns.take()
        except TimeoutError:
            raise PoolTimeout(_none_came_free()) from None


def _options(prepare: bool) -> dict[str, Any]:
    return {"autocommit": True, "prepare_threshold": 2 if prepare else None}


def _in_use(
    pool: ConnectionPool[Any] | AsyncConnectionPool[Any] | None, being_reset: ConnectionsBeingReset[Any]
) -> tuple[int, int]:
    if pool is None:
        return 0, 0
    stats = pool.get_stats()
    size = stats.get("pool_size", 0)
    return size, size - stats.get("pool_available", 0) - len(being_reset)


def _ask_for_the_reply(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """In a pipeline a server keeps its replies until asked, and the driver asks only after the last call."""
    conn.pgconn.send_flush_request()
    conn.pgconn.flush()


def _read(call: Call[T], cursor: Cursor[Any]) -> T:
    with cursor:
        return call.read(cursor.fetchall())


async def _aread(call: Call[T], cursor: AsyncCursor[Any]) -> T:
    async with cursor:
        return call.read(await cursor.fetchall())
