"""The connection that an async store keeps for the next caller, beside its pool."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faultline.store import calls
from faultline.store.pool import POOL_MAX, AsyncStore
from tests.support import new_job


@asynccontextmanager
async def open_store(dsn: str, connections_max: int = POOL_MAX) -> AsyncIterator[AsyncStore]:
    """A store whose pool makes no connection any more: those count as lent."""
    store = AsyncStore(dsn, connections_max=connections_max)
    try:
        async with store.connection():
            pass
        while store.in_use()[1]:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        yield store
    finally:
        await store.close()


def test_a_connection_is_kept_and_counts_as_free(database):
    async def use():
        async with open_store(database) as store:
            async with store.connection() as first:
                lent = store.in_use()[1]
            kept = [*store._spare]
            free = store.in_use()[1]
            async with store.connection() as second:
                pass
        return lent, kept == [first], free, second is first, first.closed

    assert asyncio.run(use()) == (1, True, 0, True, True)


def test_a_caller_that_waits_in_the_pool_gets_the_connection(database):
    async def use():
        async with open_store(database, connections_max=1) as store:
            async with store.connection():
                waiting = asyncio.create_task(store.run(calls.enqueue(new_job())))
                while not store._being_reset.borrowers:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0)
            kept = [*store._spare]
            assert await waiting > 0
        return kept

    assert asyncio.run(use()) == [], "it was kept while a caller waits"


def test_a_kept_connection_that_the_server_ended_is_replaced(database, db):
    async def use():
        async with open_store(database) as store:
            async with store.connection() as first:
                pid = first.info.backend_pid
            db.execute("select pg_terminate_backend(%s, 30000)", [pid])
            made = await store.run(calls.enqueue(new_job()))
            return first.closed, made

    was_closed, made = asyncio.run(use())
    assert was_closed
    assert made > 0


def test_one_that_is_old_or_in_a_transaction_goes_back_to_the_pool(database):
    async def use():
        async with open_store(database) as store:
            async with store.connection() as conn:
                await conn.execute("begin")
            kept = [*store._spare]
            async with store.connection() as conn:
                conn.made_at -= 3_600.0
            return kept + store._spare

    assert asyncio.run(use()) == []
