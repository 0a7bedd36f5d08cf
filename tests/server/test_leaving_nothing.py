"""A server that has stopped leaves nothing behind in its process: no counter counts, and nothing runs."""

import asyncio
import time

import grpc
import httpx2

from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.metrics.event_counter import hold, let_go
from faultline.store import calls
from faultline.store.pool import AsyncStore
from faultline.telemetry import events
from tests.grpc.conftest import a_server, make_key
from tests.support import new_job


def test_a_server_that_has_stopped_leaves_nothing_behind(database):
    before = events._listeners

    async def main():
        store = AsyncStore(database)
        key = await make_key(store, "work")
        async with (
            a_server(database, watchdog=True) as server,
            httpx2.AsyncClient(base_url=f"http://{server.http}") as client,
            grpc.aio.insecure_channel(str(server.grpc)) as channel,
            ServerUnderTest(channel, key, "default").session(wakes=True) as talk,
        ):
            assert events._listeners != before
            assert (await client.get("/metrics")).status_code == 200
            job = await store.run(calls.enqueue(new_job()))
            waiting = asyncio.create_task(client.get(f"/api/v1/jobs/{job}/wait?seconds=30", timeout=40))
            listening = asyncio.create_task(client.get("/api/v1/events", timeout=40))
            await talk.take()
            server.stop()
            await asyncio.wait([waiting, listening])
        await store.close()
        give_up_at = time.monotonic() + 60
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            assert time.monotonic() < give_up_at, left
            await asyncio.sleep(0.01)  # what was cancelled ends in the next turns of the loop

    asyncio.run(main())
    assert events._listeners == before


def test_the_process_counts_until_the_last_server_has_stopped():
    before = events._listeners
    one, other = hold(), hold()
    assert one is other
    let_go()
    assert events._listeners == (*before, one)
    let_go()
    assert events._listeners == before
