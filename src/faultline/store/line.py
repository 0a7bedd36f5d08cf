"""One lasting connection, for one coroutine at a time: what a worker's parts speak over."""

import asyncio
import contextlib
from typing import Any, TypeVar

import psycopg
from psycopg.types.numeric import Int8BinaryLoader

from faultline.errors import CannotConnect, ReadOnlyServer, ServerUnavailable
from faultline.store.call import Call, Row
from faultline.store.connect import aconnect
from faultline.store.faults import named_errors, was_swapped
from faultline.store.lean import LeanConnection
from faultline.store.spoken import Ahead

T = TypeVar("T")

CALL_SECONDS_MAX = 60.0
"""A call that is not answered by then is taken for lost: behind it may be a network that swallows."""

_NOT_NOW = ("40", "55P03", "57014", "58")
"""Deadlocks, lock and statement timeouts, an unreadable disk: true of this moment, not of the call."""


class Line:
    """Connects when it is first used, and again after it broke; the caller decides when to try again.

    CannotConnect means that nothing was sent; ServerUnavailable that the call may or may not have been
    carried out. ReadOnlyServer comes after a failover, from a server that was the primary: a new connection
    may find the new one.
    """

    def __init__(self, dsn: str, *, prepare: bool = True, raw_moments: bool = False) -> None:
        """With `raw_moments` a timestamp comes as the server's own count of microseconds since 2000."""
        self.dsn = dsn
        self._raw_moments = raw_moments
        self._prepare = prepare
        self._conn: LeanConnection | None = None
        self._turn = asyncio.Lock()

    async def run(self, call: Call[T]) -> T:
        """Carry one call, in a transaction of its own."""
        return call.read(await self.fetch(call))

    async def fetch(self, call: Call[Any], ahead: Ahead | None = None) -> list[Row]:
        """Carry one call; the rows of its reply as they came.

        Where that can be, `ahead` is given them first, while their commit is still under way.
        """
        async with self._turn:
            conn = self._conn or await self._connect()
            try:
                async with asyncio.timeout(CALL_SECONDS_MAX):
                    with named_errors():
                        if self._prepare and ahead is not None:
                            return await conn.wait(conn.spoken.carry_ahead(call, ahead))
                        if self._prepare:
                            return await conn.wait(conn.spoken.carry(call))
                        async with conn.cursor(binary=True) as cursor:
                            return await (await cursor.execute(call.sql, call.args)).fetchall()
            except TimeoutError as silence:
                await self._drop()
                raise ServerUnavailable(f"no answer to {call.name} in {CALL_SECONDS_MAX:.0f} s") from silence
            except psycopg.Error as fault:
                if is_of_this_moment(fault):
                    raise ServerUnavailable(f"the server could not do it now: {fault}") from fault
                raise
            except (ServerUnavailable, ReadOnlyServer, asyncio.CancelledError):
                # A cancelled call may have been cut in the middle of its reply: never reuse that connection.
                await self._drop()
                raise

    async def _connect(self) -> LeanConnection:
        conn = await aconnect(self.dsn, LeanConnection, prepare_threshold=None)
        if self._raw_moments:
            # A timestamp is an eight byte integer on the wire; making a datetime of it took longer than
            # reading the rest of a job.
            conn.adapters.register_loader("timestamptz", Int8BinaryLoader)
        self._conn = conn
        return conn

    async def _drop(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):
                await conn.close()

    async def close(self) -> None:
        await self._drop()


def is_of_this_moment(fault: psycopg.Error) -> bool:
    """Whether the same call may well succeed in a moment."""
    return (fault.sqlstate or "").startswith(_NOT_NOW) or was_swapped(fault)


OUTAGE = (CannotConnect, ServerUnavailable, ReadOnlyServer)
"""What a worker waits out instead of dying of it."""
