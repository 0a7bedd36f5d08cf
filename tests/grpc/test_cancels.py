"""A cancelled job's worker is told at once, through whichever API and replica it was cancelled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx2
import pytest

from faultline import Faultline
from faultline.lab.conformance.scripted_worker import ServerUnderTest, done
from faultline.server.process import Server
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.grpc.conftest import a_server, make_key
from tests.support import new_job


@contextlib.asynccontextmanager
async def a_running_job(store: AsyncStore, server: Server, **hello: Any) -> AsyncIterator[tuple[Any, Any]]:
    """A job given out over a session with this server: the talk, and the job."""
    await store.run(calls.enqueue(new_job()))
    key = await make_key(store, "work")
    async with (
        grpc.aio.insecure_channel(str(server.grpc)) as channel,
        ServerUnderTest(channel, key, "default").session(**hello) as talk,
    ):
        yield talk, await talk.take()


async def told(talk: Any) -> Any:
    """The next notice of a cancelled job."""
    while True:
        notice = (await talk.hear("notice")).notice
        if notice.WhichOneof("news") == "cancel":
            return notice.cancel


def carry(database: str, test: Any) -> None:
    async def main() -> None:
        store = AsyncStore(database)
        try:
            async with asyncio.timeout(60):
                await test(store)
        finally:
            await store.close()

    asyncio.run(main())


async def post(server: Server, key: str, path: str, **body: Any) -> Any:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        answer = await client.post(f"http://{server.http}/api/v1{path}", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.mark.parametrize("pooler", ["none", "transaction"])
def test_a_cancel_over_http_reaches_the_session_of_its_worker(database, pooler):
    """The notice also arrives behind a pooler, where no session can listen: it is the same process."""

    async def test(store: AsyncStore) -> None:
        async with a_server(database, pooler) as server, a_running_job(store, server) as (talk, job):
            await post(server, await make_key(store, "operate"), f"/jobs/{job.id}/cancel")
            notice = await told(talk)
            assert (notice.job_id, notice.token, notice.claim) == (job.id, job.token, job.claim)

    carry(database, test)


def test_a_bulk_cancel_over_http_reaches_it_too(database):
    async def test(store: AsyncStore) -> None:
        async with a_server(database) as server, a_running_job(store, server) as (talk, job):
            key = await make_key(store, "operate")
            assert (await post(server, key, "/jobs/bulk", act="cancel", confirm=1))["done"] == 1
            assert (await told(talk)).job_id == job.id

    carry(database, test)


def test_a_cancel_at_another_replica_reaches_it_by_the_database(database):
    async def test(store: AsyncStore) -> None:
        async with (
            a_server(database) as here,
            a_server(database) as there,
            a_running_job(store, here) as (talk, job),
        ):
            await _until_listening(store, servers=2)
            await post(there, await make_key(store, "operate"), f"/jobs/{job.id}/cancel")
            assert (await told(talk)).job_id == job.id

    carry(database, test)


def test_a_cancel_by_a_program_of_ones_own_reaches_it_too(database):
    async def test(store: AsyncStore) -> None:
        app = Faultline(database)
        async with a_server(database) as server, a_running_job(store, server) as (talk, job):
            await _until_listening(store)
            await app.acancel(job.id)
            assert (await told(talk)).job_id == job.id
        await app.aclose()

    carry(database, test)


def test_news_of_a_job_that_was_not_cancelled_is_not_passed_on(database):
    """A login with a connection to the database can write anything on its channel."""

    async def test(store: AsyncStore) -> None:
        async with a_server(database) as server, a_running_job(store, server) as (talk, job):
            await _until_listening(store)
            await store.run(calls.enqueue(new_job()))
            other = await talk.take()
            await store.run(calls.wake_cancelled([job.id]))
            for nonsense in ("cancelled:", "cancelled:1,,2", "cancelled:x", f"cancelled:{'9' * 40}"):
                await store.run(calls.wake(nonsense))
            await store.run(calls.cancel(other.id), calls.wake_cancelled([job.id, other.id]))

            assert (await told(talk)).job_id == other.id
            assert (await talk.settle(done(job))).accepted == 1
            assert not [late for late in talk._heard if late.notice.WhichOneof("news") == "cancel"]

    carry(database, test)


async def _until_listening(store: AsyncStore, servers: int = 1) -> None:
    """Wait until so many servers listen: news that came before was not heard."""
    async with store.connection() as conn:
        while True:
            found = await conn.execute(
                "select count(*) from pg_stat_activity"
                " where query = 'listen faultline' and datname = current_database()"
            )
            ((listeners,),) = await found.fetchall()
            if listeners >= servers:
                return
            await asyncio.sleep(0.02)
