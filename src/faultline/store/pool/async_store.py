"""AsyncStore: await a Call over a pool, or over the caller's own connection."""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.errors import InternalError_
from psycopg.rows import tuple_row

from faultline.errors import CannotConnect, DatabaseError, ReadOnlyServer
from faultline.store.call import Call
from faultline.store.driver.arrays import register_types
from faultline.store.driver.async_connection import AsyncPqConnection
from faultline.store.driver.loaders import register_raw_types
from faultline.store.driver.sqlstate import named_errors, was_swapped
from faultline.store.pool.async_pool import AsyncPool
from faultline.store.pool.pool_settings import (
    AHEAD_MAX,
    POOL_WAIT_SECONDS,
    SECOND_TRY_SECONDS,
    SWAPS_MAX,
    ask_for_the_reply,
)

T = TypeVar("T")


class AsyncStore(AsyncPool):
    """Runs calls for async code. The first call that needs a connection makes it."""

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
                return call.read(await conn.wait(conn.prepared_calls.carry(call, hint)))
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
                    ask_for_the_reply(conn)
                    if len(waiting) > AHEAD_MAX:
                        yield await _aread(*waiting.popleft())
                while waiting:
                    yield await _aread(*waiting.popleft())


async def _aread(call: Call[T], cursor: AsyncCursor[Any]) -> T:
    async with cursor:
        return call.read(await cursor.fetchall())
