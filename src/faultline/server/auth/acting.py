"""acting: one transaction in which a caller's verbs are recorded under its name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from psycopg import AsyncConnection

from faultline.server.auth.caller import Caller
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import AsyncStore

T = TypeVar("T")


class Acting:
    """Carries calls in the one transaction of an act."""

    def __init__(self, conn: AsyncConnection[Any]) -> None:
        self._conn = conn

    async def run(self, call: Call[T]) -> T:
        return await AsyncStore.run_in(self._conn, call)


@asynccontextmanager
async def acting(store: AsyncStore, caller: Caller, reason: str | None = None) -> AsyncIterator[Acting]:
    """Act for a caller: calls in the block commit at its end, and are recorded with caller and reason.

    >>> async def cancel(store: AsyncStore, caller: Caller, job_id: int) -> None:
    ...     async with acting(store, caller, "a customer asked for it") as act:
    ...         await act.run(calls.cancel(job_id))

    Send wake-ups after the block: a NOTIFY inside it makes commits wait for each other.
    """
    async with store.transaction() as conn:
        act = Acting(conn)
        await act.run(calls.act_as(caller.actor, reason))
        yield act
