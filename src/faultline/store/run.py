"""Store and AsyncStore: carry a Call over a pool, or over your own connection."""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.errors import InternalError_
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from faultline.errors import CannotConnect, DatabaseError, ReadOnlyServer
from faultline.store.arrays import teach
from faultline.store.call import Call
from faultline.store.connect import acheck_lent, aconnect, agreet, check_lent, connect, conninfo, greet
from faultline.store.faults import named_errors, was_swapped
from faultline.store.lean import LeanConnection, PlainConnection
from faultline.store.loaders import teach_raw
from faultline.store.turned import refused_by_server
from faultline.store.turns import Place, Turns
from faultline.telemetry.pools import pool_name

T = TypeVar("T")

POOL_MAX = 8
SWAPS_MAX = 3
"""How often a call is repeated that met a migration making the functions anew."""

AHEAD_MAX = 2
"""Calls sent ahead of the one whose reply is read: enough to keep the server at work, and memory flat."""

POOL_WAIT_SECONDS = 10.0
SECOND_TRY_SECONDS = 4.0
"""How long a second try waits for a connection: the first may have taken ten of the fifteen seconds."""

# A pool left to itself tries again after 1, 2, 4 ... 128 seconds, and would sleep through a server's return.
# So it gives up after a second, and whoever still waits asks again: that starts the next try.
POOL_TRY_SECONDS = 1.0


def _none_came_free(seconds: float | None = None) -> str:
    waited = POOL_WAIT_SECONDS if seconds is None else seconds
    return f"none came free in {waited:.0f} s; the server is away, or all of them are in use"


class Store:
    """Carries calls for plain code. Connections are made when the first call needs one."""

    def __init__(self, dsn: str, *, prepare: bool | None = None, connections_max: int = POOL_MAX) -> None:
        """With `prepare` left out the first connection finds out whether a pooler stands in between."""
        self.dsn = dsn
        self._prepare = prepare
        self._connections_max = connections_max
        self._pool: ConnectionPool[PlainConnection] | None = None
        self._opening = Lock()
        self._left_at = 0.0

    def run(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Carry one call, in a transaction of its own; a hint, if given, right behind its commit.

        Where a server turned read-only nothing was written: it is tried once more, over a new connection.
        """
        try:
            return self._run(POOL_WAIT_SECONDS, call, hint)
        except ReadOnlyServer as refused:
            try:
                return self._run(POOL_WAIT_SECONDS, call, hint)
            except CannotConnect as away:  # as before: there is no other server yet
                raise refused from away

    def run_again(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Carry a call whose first try was not answered; waits less for a connection: time has passed."""
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

    def _carry(self, conn: PlainConnection, call: Call[T], hint: Call[Any] | None) -> T:
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
        """Carry one call in the caller's own transaction."""
        teach(conn)
        with named_errors(), conn.cursor(binary=True, row_factory=tuple_row) as cursor:
            teach_raw(cursor.adapters, call)
            return call.read(cursor.execute(call.sql, call.args).fetchall())

    @staticmethod
    def run_each(conn: Connection[Any], calls: Iterable[Call[T]]) -> Iterator[T]:
        """Carry many calls in the caller's own transaction, the next made while the server does the last."""
        teach(conn)
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

    def connection(self) -> AbstractContextManager[PlainConnection]:
        """A connection of the pool, in autocommit mode."""
        return self._borrowed(POOL_WAIT_SECONDS)

    @contextmanager
    def _borrowed(self, wait: float) -> Iterator[PlainConnection]:
        pool = self._open()
        with named_errors():
            conn = self._lend(pool, wait)
        try:
            yield conn
        except BaseException as error:
            conn.refuses_writes |= refused_by_server(error)
            raise
        finally:
            if conn.is_to_be_left and conn.made_at > self._left_at:
                self._left_at = monotonic()
                pool.drain()  # and its neighbours with it, which have the same server
            pool.putconn(conn)

    @contextmanager
    def transaction(self) -> Iterator[PlainConnection]:
        """A transaction on a connection of the pool; not on one whose server has turned read-only."""
        for is_last in (False, True):
            with self.connection() as conn, named_errors(), conn.transaction():
                if is_last or not conn.has_turned:  # told with the reply to BEGIN
                    yield conn
                    return

    @staticmethod
    def _lend(pool: ConnectionPool[PlainConnection], wait: float) -> PlainConnection:
        until = monotonic() + wait
        while True:
            try:
                return pool.getconn(POOL_TRY_SECONDS)
            except PoolTimeout:
                if monotonic() >= until:
                    raise PoolTimeout(_none_came_free(wait)) from None

    def _open(self) -> ConnectionPool[PlainConnection]:
        if self._pool is not None:
            return self._pool
        # Threads that come while the first one tries in vain do not each try for as long, one by one.
        if not self._opening.acquire(timeout=POOL_WAIT_SECONDS):
            raise CannotConnect(f"no connection to the database within the time allowed: {_none_came_free()}")
        try:
            if self._pool is None:
                # One connection by hand first: a pool that cannot connect only says that it waited.
                with connect(self.dsn) as conn:
                    pooled = greet(conn)
                if self._prepare is None:
                    self._prepare = not pooled
                self._pool = ConnectionPool(
                    conninfo(self.dsn), connection_class=PlainConnection, kwargs=_options(self._prepare),
                    min_size=1, max_size=self._connections_max,
                    reconnect_timeout=POOL_TRY_SECONDS, name=pool_name(), check=check_lent, open=True,
                )  # fmt: skip
            return self._pool
        finally:
            self._opening.release()

    def in_use(self) -> tuple[int, int]:
        """How many connections the pool has, and how many of them are lent."""
        return _in_use(self._pool)

    def close(self) -> None:
        with self._opening:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


class AsyncStore:
    """Carries calls for async code. Connections are made when the first call needs one.

    With `turns` many clients share them: see `faultline.store.turns`.
    """

    def __init__(
        self,
        dsn: str,
        *,
        prepare: bool | None = None,
        connections_max: int = POOL_MAX,
        turns: Turns | None = None,
    ) -> None:
        self.dsn = dsn
        self._prepare = prepare
        self._connections_max = connections_max
        self._pool: AsyncConnectionPool[LeanConnection] | None = None
        self._turns = turns
        self._left_at = 0.0

    @property
    def listens(self) -> bool:
        """Whether LISTEN can hear: not behind a pooler that gives each transaction another session.

        Known after the first call.
        """
        return self._prepare is not False

    async def run(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Carry one call, in a transaction of its own; a hint, if given, right behind its commit.

        Where a server turned read-only nothing was written: it is tried once more, over a new connection.
        """
        try:
            return await self._run(POOL_WAIT_SECONDS, call, hint)
        except ReadOnlyServer as refused:
            try:
                return await self._run(POOL_WAIT_SECONDS, call, hint)
            except CannotConnect as away:
                raise refused from away

    async def run_again(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Carry a call whose first try was not answered; waits less for a connection: time has passed."""
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

    async def _carry(self, conn: LeanConnection, call: Call[T], hint: Call[Any] | None) -> T:
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
        """Carry one call in the caller's own transaction."""
        teach(conn)
        with named_errors():
            async with conn.cursor(binary=True, row_factory=tuple_row) as cursor:
                teach_raw(cursor.adapters, call)
                await cursor.execute(call.sql, call.args)
                return call.read(await cursor.fetchall())

    @staticmethod
    async def run_each(conn: AsyncConnection[Any], calls: Iterable[Call[T]]) -> AsyncIterator[T]:
        """Carry many calls in the caller's own transaction, the next made while the server does the last."""
        teach(conn)
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

    def connection(self) -> AbstractAsyncContextManager[LeanConnection]:
        """A connection of the pool, in autocommit mode."""
        return self._borrowed(POOL_WAIT_SECONDS)

    @asynccontextmanager
    async def _borrowed(self, wait: float) -> AsyncIterator[LeanConnection]:
        place = None if self._turns is None else await _place(self._turns)
        try:
            pool = await self._open()
            with named_errors():
                conn = await self._lend(pool, wait)
            try:
                yield conn
            except BaseException as error:
                conn.refuses_writes |= refused_by_server(error)
                raise
            finally:
                try:
                    if conn.is_to_be_left and conn.made_at > self._left_at:
                        self._left_at = monotonic()
                        await pool.drain()
                finally:
                    await pool.putconn(conn)
        finally:
            if place is not None:
                place.give_back()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[LeanConnection]:
        """A transaction on a connection of the pool; not on one whose server has turned read-only."""
        for is_last in (False, True):
            async with self.connection() as conn:
                with named_errors():
                    async with conn.transaction():
                        if is_last or not conn.has_turned:
                            yield conn
                            return

    @staticmethod
    async def _lend(pool: AsyncConnectionPool[LeanConnection], wait: float) -> LeanConnection:
        until = monotonic() + wait
        while True:
            try:
                return await pool.getconn(POOL_TRY_SECONDS)
            except PoolTimeout:
                if monotonic() >= until:
                    raise PoolTimeout(_none_came_free(wait)) from None

    async def _open(self) -> AsyncConnectionPool[LeanConnection]:
        if self._pool is None:
            async with await aconnect(self.dsn) as conn:
                pooled = await agreet(conn)
            if self._prepare is None:
                self._prepare = not pooled
            if self._pool is None:  # another coroutine may have opened it while we greeted
                pool: AsyncConnectionPool[LeanConnection] = AsyncConnectionPool(
                    conninfo(self.dsn), connection_class=LeanConnection, kwargs=_options(self._prepare),
                    min_size=1, max_size=self._connections_max,
                    reconnect_timeout=POOL_TRY_SECONDS, name=pool_name(), check=acheck_lent, open=False,
                )  # fmt: skip
                self._pool = pool
                await pool.open()
        return self._pool

    def in_use(self) -> tuple[int, int]:
        """How many connections the pool has, and how many of them are lent."""
        return _in_use(self._pool)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()


async def _place(turns: Turns) -> Place:
    with named_errors():
        try:
            return await turns.take()
        except TimeoutError:
            raise PoolTimeout(_none_came_free()) from None


def _options(prepare: bool) -> dict[str, Any]:
    return {"autocommit": True, "prepare_threshold": 2 if prepare else None}


def _in_use(pool: ConnectionPool[Any] | AsyncConnectionPool[Any] | None) -> tuple[int, int]:
    if pool is None:
        return 0, 0
    stats = pool.get_stats()
    size = stats.get("pool_size", 0)
    return size, size - stats.get("pool_available", 0)


def _ask_for_the_reply(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """In a pipeline a server keeps its replies until asked, and the driver asks behind all it has sent."""
    conn.pgconn.send_flush_request()
    conn.pgconn.flush()


def _read(call: Call[T], cursor: Cursor[Any]) -> T:
    with cursor:
        return call.read(cursor.fetchall())


async def _aread(call: Call[T], cursor: AsyncCursor[Any]) -> T:
    async with cursor:
        return call.read(await cursor.fetchall())
