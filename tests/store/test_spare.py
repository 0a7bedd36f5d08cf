"""The connection that an async store keeps for the next caller, beside its pool."""

import asyncio

from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.support import new_job


def test_a_connection_is_kept_and_counts_as_free(database):
    async def use():
        store = AsyncStore(database)
        async with store.connection() as first:
            assert store.in_use()[1] == 1
        assert store._spare == [first]
        assert store.in_use()[1] == 0
        async with store.connection() as second:
            assert second is first
        await store.close()
        return first.closed

    assert asyncio.run(use())


def test_a_caller_that_waits_in_the_pool_gets_the_connection(database):
    async def use():
        store = AsyncStore(database, connections_max=1)
        async with store.connection():
            waiting = asyncio.create_task(store.run(calls.enqueue(new_job())))
            while not store._being_reset.borrowers:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
        lent = store._spare == []
        assert await waiting > 0
        await store.close()
        return lent

    assert asyncio.run(use()), "it was kept while a caller waits"


def test_a_kept_connection_that_the_server_ended_is_replaced(database, db):
    async def use():
        store = AsyncStore(database)
        async with store.connection() as first:
            pid = first.info.backend_pid
        db.execute("select pg_terminate_backend(%s, 30000)", [pid])
        made = await store.run(calls.enqueue(new_job()))
        await store.close()
        return first.closed, made

    was_closed, made = asyncio.run(use())
    assert was_closed
    assert made > 0


def test_one_that_is_old_or_in_a_transaction_goes_back_to_the_pool(database):
    async def use():
        store = AsyncStore(database)
        async with store.connection() as conn:
            await conn.execute("begin")
        assert store._spare == []
        async with store.connection() as conn:
            conn.made_at -= 3_600.0
        assert store._spare == []
        await store.close()

    asyncio.run(use())
