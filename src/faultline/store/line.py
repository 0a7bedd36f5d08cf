"""One lasting connection, for one coroutine at a time: what a worker's parts speak over."""

import asyncio
import contextlib
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor

from faultline.errors import CannotConnect, ServerUnavailable
from faultline.store.call import Call
from faultline.store.connect import aconnect
from faultline.store.faults import named_errors

T = TypeVar("T")


class Line:
    """Connects when it is first used, and again after the connection broke; the caller decides when to try again.

    CannotConnect means that nothing was sent; ServerUnavailable that the call may or may not have been carried out.
    """

    def __init__(self, dsn: str, *, prepare: bool = True) -> None:
        self.dsn = dsn
        self._prepare = prepare
        self._conn: AsyncConnection[Any] | None = None
        self._cursor: AsyncCursor[Any] | None = None
        self._turn = asyncio.Lock()

    async def run(self, call: Call[T]) -> T:
        """Carry one call, in a transaction of its own."""
        async with self._turn:
            cursor = await self._connected()
            try:
                with named_errors():
                    await cursor.execute(call.sql, call.params, prepare=self._prepare)
                    return call.read(await cursor.fetchall())
            except (ServerUnavailable, asyncio.CancelledError):
                # A cancelled call may have been cut in the middle of its reply: never reuse that connection.
                await self._drop()
                raise

    async def _connected(self) -> AsyncCursor[Any]:
        if self._cursor is None:
            self._conn = await aconnect(self.dsn, prepare_threshold=0 if self._prepare else None)
            self._cursor = self._conn.cursor(binary=True)
        return self._cursor

    async def _drop(self) -> None:
        conn, self._conn, self._cursor = self._conn, None, None
        if conn is not None:
            with contextlib.suppress(Exception):
                await conn.close()

    async def close(self) -> None:
        await self._drop()


OUTAGE = (CannotConnect, ServerUnavailable)
"""What a worker waits out instead of dying of it."""
