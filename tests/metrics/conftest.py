"""What tests of the exporters need: one that counts, and a worker and a server that have had a bad day."""

import asyncio
import fcntl
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.limit import Limit
from faultline.metrics.event_counter import EventCounter
from faultline.metrics.prometheus import render
from faultline.store import calls
from faultline.store.pool import AsyncStore, Store
from tests.conftest import a_database
from tests.grpc.conftest import a_server, make_key
from tests.metrics.bad_day import app, dies, doomed, fine, flaky, too_late
from tests.servers import Server
from tests.support import claim_one, enqueue
from tests.worker.harness import InProcess, eventually, quick

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scrapes(NamedTuple):
    """What Prometheus would read from a worker and from a server."""

    worker: str
    server: str

    def samples(self) -> Samples:
        return samples(self.worker) | samples(self.server)


def samples(scrape: str) -> Samples:
    """A scrape as its client library reads it."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(scrape)
        for sample in family.samples
    }


def value(scrape: str, name: str, **labels: str) -> float | None:
    """One sample of a scrape."""
    return samples(scrape).get((name, frozenset(labels.items())))


@pytest.fixture
def counting() -> Iterator[EventCounter]:
    """One that counts the events of this process, for this test alone."""
    counting = EventCounter()
    stop = counting.start()
    yield counting
    stop()


def text(counting: EventCounter) -> str:
    """What its endpoint would say."""
    return render(counting.figures.snapshot())[0].decode()


async def server_scrape(dsn: str) -> str:
    """What a server says that has answered and refused over both APIs."""
    astore = AsyncStore(dsn)
    key = await make_key(astore, "admin")
    await astore.close()
    async with a_server(dsn) as server:
        shown = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=f"http://{server.http}", headers=shown, timeout=30) as client:
            await client.get("/api/v1/jobs")
            await client.get("/api/v1/jobs/123456789")
            await client.get("/api/v1/stats", headers={"authorization": "Bearer flk_wrong"})
            async with grpc.aio.insecure_channel(str(server.grpc)) as channel:
                place = ServerUnderTest(channel, key)
                await place.submit(queue="default")
                with suppress(grpc.aio.AioRpcError):
                    await place.info(123456789)
            return (await client.get("/metrics")).text


@pytest.fixture(scope="session")
def bad_day(server: Server, template: str, testrun_uid: str) -> Scrapes:
    """A worker under a small load with a crash, a refusal, a retry, a dead job and a takeover; once a run."""
    told = Path(tempfile.gettempdir()) / f"faultline-bad-day-{testrun_uid}.json"
    with told.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the second process reads what the first has seen
        file.seek(0)
        if not (seen := file.read()):
            for dsn in a_database(server, template):
                seen = json.dumps(_have_a_bad_day(dsn))
            file.write(seen)
    return Scrapes(*json.loads(seen))


def _have_a_bad_day(dsn: str) -> Scrapes:
    app.connect_to(dsn)
    store, counting = Store(dsn), EventCounter()
    stop = counting.start()
    # The hold-fire of a young server ends sooner.
    store.run(calls.configure(default_lease=timedelta(milliseconds=500)))
    store.run(calls.set_limit("doomed", Limit(total=1)))
    store.run(calls.limit_task("doomed", "doomed"))
    lost = enqueue(store, task="fine", queue="lost")
    claim_one(store, queues=("lost",), lease=timedelta(milliseconds=500))  # by a worker that dies now
    store.run(calls.set_schedule({"name": "fine", "task": "fine", "every": "1 second", "queue": "scheduled"}))
    expired = enqueue(store, task="fine", queue="expired", expires_in=timedelta(milliseconds=1))
    jobs = [lost, expired, *fine.enqueue_many(fine.new() for _ in range(20))]
    jobs += [task.enqueue().id for task in (flaky, doomed, dies)]
    worker = InProcess(dsn, app.registry, quick(queues={"default": None, "lost": None}, jobs_max=8)).start()
    try:
        eventually(lambda: _all_ended(store, jobs))
        late = too_late.enqueue(dsn).id
        eventually(lambda: _all_ended(store, [late]) and _told(counting))
        return Scrapes(text(counting), asyncio.run(server_scrape(dsn)))
    finally:
        worker.leave()
        stop()
        store.close()
        app.close()


def _all_ended(store: Store, jobs: list[int]) -> bool:
    found: list[Any] = [store.run(calls.get(job)) for job in jobs]
    return all(info is not None and info.state.ended for info in found)


def _told(counting: EventCounter) -> bool:
    """The slowest figures are those that are told twice a second, and those the rows are asked for."""
    snapshot = counting.figures.snapshot()
    idle = snapshot.get("worker_slots", {}).get(("idle",))
    leads = snapshot.get("watchdog_leads", {}).get(())
    asked = ("recovery_seconds", "zombie_seconds", "crashes")
    return idle == 8 and leads == 1 and all(name in snapshot for name in asked)
