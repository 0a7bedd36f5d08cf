"""Fair shares: what one key does, however much of it, leaves the others calls, polls and connections."""

import asyncio
import re
import time

import grpc
import httpx2
import psycopg
import pytest

from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.lab.conformance.status_details import problem_in
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.limits import Limits
from faultline.server.waits import JobWaits
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.grpc.conftest import a_server, make_key
from tests.server.test_before_the_key import MIB, memory
from tests.support import new_job

LEASE_MS = 30_000
SLOW_SECONDS = 4.0
SOON = 20.0
"""Far below what waiting behind the crowd would take, far above what a call needs on a busy machine."""


class Doors:
    """Both APIs of one server, and keys for them."""

    def __init__(self, server, store):
        self.server = server
        self.store = store
        self._channels = []

    async def key(self, *scopes, queues=None):
        return await make_key(self.store, *scopes, queues=queues)

    def place(self, key, queue="default"):
        channel = grpc.aio.insecure_channel(str(self.server.grpc), [("grpc.use_local_subchannel_pool", 1)])
        self._channels.append(channel)
        return ServerUnderTest(channel, key, queue)

    def http(self, key):
        limits = httpx2.Limits(max_connections=400, max_keepalive_connections=400)
        return httpx2.AsyncClient(
            base_url=f"http://{self.server.http}", headers={"authorization": f"Bearer {key}"}, timeout=60,
            limits=limits,
        )  # fmt: skip

    async def close(self):
        for channel in self._channels:
            await channel.close()


@pytest.fixture
def doors(database):
    """Carry a test's coroutine to its end, with a server of both APIs."""

    def run(test, **config):
        async def main():
            store = AsyncStore(database)
            try:
                async with asyncio.timeout(120), a_server(database, **config) as server:
                    place = Doors(server, store)
                    try:
                        await test(place)
                    finally:
                        await place.close()
            finally:
                await store.close()

        asyncio.run(main())

    return run


def slowed(database, name, seconds=SLOW_SECONDS):
    """Have a function of the database take its time, and count how often it is asked."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("create sequence if not exists public.asked; grant usage on public.asked to public")
        found = conn.execute(
            "select pg_get_functiondef(oid) from pg_proc where proname = %s", [name]
        ).fetchone()[0]
        wait = f"begin perform pg_sleep({seconds}); perform nextval('public.asked');"
        conn.execute(re.sub(r"(?im)^begin", wait, found, count=1))


def times_asked(database):
    with psycopg.connect(database, autocommit=True) as conn:
        called, last = conn.execute("select is_called, last_value from public.asked").fetchone()
        return last if called else 0


async def leased(place):
    """One job under a lease."""
    await place.submit()
    ask = worker_pb2.Ask(id=1, room=1, queues=[place.queue])
    granted = await place.ask(place.workers.Lease, worker_pb2.LeaseRequest(ask=ask, lease_ms=LEASE_MS))
    (job,) = granted.jobs
    return worker_pb2.Proof(job_id=job.id, token=job.token, claim=job.claim)


async def beat(place, proof):
    """Renew it, and say how long that took."""
    began = time.monotonic()
    request = worker_pb2.HeartbeatRequest(beat=worker_pb2.Beat(id=1, leases=[proof]), lease_ms=LEASE_MS)
    beaten = await place.ask(place.workers.Heartbeat, request, 30)
    assert list(beaten.answers) == [worker_pb2.PULSE_HELD], beaten
    return time.monotonic() - began


def test_a_thousand_long_polls_of_one_key_stop_no_heartbeat_of_another(doors):
    async def test(place):
        ours = place.place(await place.key("work", "enqueue", queues=("ours",)), "ours")
        proof = await leased(ours)
        greedy = await place.key("work", queues=("theirs",))
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(id=1, room=1, queues=["theirs"], wait_ms=30_000))
        polls = []
        for _ in range(11):
            theirs = place.place(greedy, "theirs")
            polls += [asyncio.ensure_future(theirs.ask(theirs.workers.Lease, ask, 60)) for _ in range(100)]
        async with asyncio.timeout(60):
            while sum(poll.done() for poll in polls) < 100:  # noqa: ASYNC110 - then there is no room for more
                await asyncio.sleep(0.1)

        assert await beat(ours, proof) < SOON
        assert await ours.submit() > 0

        done, waiting = await asyncio.wait(polls, timeout=0)
        codes = [poll.exception().code() for poll in done]
        assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) >= 90, codes
        for poll in waiting:
            poll.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    doors(test)


def test_one_read_key_cannot_take_all_event_streams(doors):
    async def test(place):
        greedy, modest = await place.key("read"), await place.key("read")
        async with place.http(greedy) as many, place.http(modest) as other:
            streams = []
            try:
                for _ in range(110):
                    request = many.build_request("GET", "/api/v1/events")
                    streams.append(await many.send(request, stream=True))
                got = [stream.status_code for stream in streams]
                mine = await other.send(other.build_request("GET", "/api/v1/events"), stream=True)
                streams.append(mine)

                assert mine.status_code == 200
                assert got.count(200) == Limits().subscribers_per_key
                assert got.count(429) == 110 - Limits().subscribers_per_key
            finally:
                for stream in streams:
                    await stream.aclose()

    doors(test)


def test_150_clients_of_stats_cost_two_questions_and_hold_up_no_other(doors, database):
    slowed(database, "list_queues")

    async def test(place):
        ours = place.place(await place.key("work", "enqueue"), "ours")
        proof = await leased(ours)
        reader, producer = await place.key("read"), await place.key("enqueue")
        async with place.http(reader) as many, place.http(producer) as shop:
            asking = [asyncio.ensure_future(many.get("/api/v1/stats")) for _ in range(150)]
            await asyncio.sleep(0.3)
            began = time.monotonic()

            beats = [await beat(ours, proof) for _ in range(3)]
            submitted = await shop.post("/api/v1/jobs", json={"task": "t"})

            assert submitted.status_code == 201
            assert time.monotonic() - began < SOON
            assert max(beats) < SOON
            assert {answer.status_code for answer in await asyncio.gather(*asking)} == {200}
            assert times_asked(database) <= 4

    doors(test)


def test_slow_reads_of_one_key_leave_connections_to_the_others(doors, database):
    """60 reads of ten seconds each would fill 16 connections for forty."""
    slowed(database, "find_jobs", 10.0)

    async def test(place):
        ours = place.place(await place.key("work", "enqueue"), "ours")
        proof = await leased(ours)
        reader, producer = await place.key("read"), await place.key("enqueue")
        async with place.http(reader) as many, place.http(producer) as shop:
            asking = [asyncio.ensure_future(many.get("/api/v1/jobs")) for _ in range(60)]
            await asyncio.sleep(0.5)
            began = time.monotonic()

            beats = [await beat(ours, proof) for _ in range(3)]
            submitted = await shop.post("/api/v1/jobs", json={"task": "t"})
            took = time.monotonic() - began

            assert submitted.status_code == 201
            assert not any(task.done() for task in asking[-10:])  # the crowd was still there
            assert max(beats) < 9.0
            assert took < SOON
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    doors(test)


def test_long_polls_over_http_take_no_room_from_calls(doors):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        async with place.http(await place.key("read")) as many, place.http(await place.key("read")) as other:
            path = f"/api/v1/jobs/{job_id}/wait?seconds=30"
            polls = [asyncio.ensure_future(many.get(path)) for _ in range(30)]
            await asyncio.sleep(1.0)

            assert (await many.get("/api/v1/jobs")).status_code == 200
            assert (await other.get(path.replace("30", "0"))).status_code == 200
            codes = [poll.result().status_code for poll in polls if poll.done()]
            assert codes == [429] * 20
            for poll in polls:
                poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)

    doors(test, limits=Limits(waits_per_key=10, waits_max=20, calls_at_once_max=10, calls_at_once_per_key=5))


def test_a_key_has_a_rate_on_grpc_as_on_http(doors):
    async def test(place):
        greedy = place.place(await place.key("read"))
        other = place.place(await place.key("read", "enqueue"))
        codes = []
        for _ in range(30):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await greedy.ask(greedy.jobs.Get, client_pb2.GetRequest(id=1))
            codes.append(problem_in(caught.value).code)

        assert codes.count("too_many") > 5
        assert codes[0] == "not_found"
        assert await other.submit() > 0

    doors(test, limits=Limits(calls_per_second_per_key=5))


def test_long_polls_do_not_hold_what_they_wait_for(doors, monkeypatch):
    """260,000 empty lists take 14 MB in memory, of a document below a mebibyte."""
    end_of, waiting, all_wait = JobWaits.end_of, [], asyncio.Event()

    async def counted(self, job_id, seconds):
        waiting.append(job_id)
        if len(waiting) == 16:
            all_wait.set()
        await end_of(self, job_id, seconds)

    monkeypatch.setattr(JobWaits, "end_of", counted)
    args = '{"a":[' + "[]," * 260_000 + "[]]}"

    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job(args=args)))
        reader = await place.key("read")
        way = place.place(reader)
        async with place.http(reader) as http:
            (await http.get(f"/api/v1/jobs/{job_id}")).raise_for_status()
            before = memory()
            polls = [
                asyncio.create_task(http.get(f"/api/v1/jobs/{job_id}/wait?seconds=30")) for _ in range(8)
            ]
            wait = client_pb2.WaitRequest(id=job_id, wait_ms=30_000)
            polls += [asyncio.create_task(way.ask(way.jobs.Wait, wait, 60)) for _ in range(8)]
            async with asyncio.timeout(60):
                await all_wait.wait()
            held = memory() - before
            for poll in polls:
                poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)
            assert held < 60 * MIB

    doors(test)
