"""What jobs weigh on their way through the server: bounded by the claim, by the key, and for all together."""

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from faultline.lab.conformance.scripted_worker import ServerUnderTest, done
from faultline.rpc.v1 import worker_pb2
from faultline.server.auth import mint
from faultline.server.throttling.payload_budget import CLAIM_BYTES_MAX, PayloadBudget
from faultline.store import calls
from tests.support import new_job

MIB = 2**20
LARGE = '{"a": "' + "x" * (MIB - 9) + '"}'


def test_a_claim_waits_for_room_and_one_key_has_a_part_of_it():
    async def test():
        budget = PayloadBudget(8 * MIB, 2 * MIB)
        one, two = [await budget.room("a", 0.0) for _ in range(2)]
        assert await budget.room("a", time.monotonic() + 0.05) is None
        third = asyncio.create_task(budget.room("a", time.monotonic() + 20))
        other = await budget.room("b", time.monotonic() + 20)
        assert other is not None

        one.shrink(10)
        assert not third.done()
        one.release()
        assert (await third).bytes == CLAIM_BYTES_MAX
        for load in (one, two, other, await third):
            load.release()
            load.release()
        assert (budget._total, +budget._held) == (0, {})

    asyncio.run(test())


def test_a_waiter_that_gave_up_holds_nothing():
    async def test():
        budget = PayloadBudget(MIB, MIB)
        held = await budget.room("a", 0.0)
        waiting = [asyncio.create_task(budget.room("a", time.monotonic() + 20)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        held.release()
        waiting[1].cancel()  # its turn has come already
        await asyncio.gather(*waiting, return_exceptions=True)
        (await waiting[2]).release()
        assert budget._total == 0

    asyncio.run(test())


def test_large_jobs_come_one_ask_after_the_other_and_all_of_them(served):
    async def test(place):
        way = place.place()
        await place.store.run(calls.enqueue_many([new_job(args=LARGE)] * 5))
        seen: set[int] = set()
        async with way.session() as talk:
            while len(seen) < 5:
                jobs = (await talk.ask(room=1_000, wait_ms=5_000)).jobs
                assert sum(len(job.args) for job in jobs) <= MIB
                await talk.settle(*[done(job) for job in jobs])
                seen |= {job.id for job in jobs}
        assert place.server.workers.service.assigner.payload_budget._total == 0

    served(test)


@pytest.fixture
def process(database, store):
    """`faultline server` with gRPC as people start it; its port and a key."""
    made = mint()
    store.run(calls.create_key(made.id, made.hash, made.id, ["admin"]))
    running = subprocess.Popen(
        [sys.executable, "-m", "faultline", "server", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
         "--no-watchdog"],
        env={**os.environ, "FAULTLINE_DSN": database}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        for line in running.stderr:
            if "listening for gRPC" in line:
                yield running, int(re.search(r"127\.0\.0\.1:(\d+)", line)[1]), made.text
                break
    finally:
        running.terminate()
        running.communicate(timeout=60)


def _peak(process) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("sizes", [[MIB], [100_000], [10_000], [MIB, 100, 100_000, 10_000]], ids=str)
def test_s7_asks_for_a_thousand_large_jobs_by_many_sessions_take_60_megabytes_at_most(process, store, sizes):
    """Forty sessions ask eight times for a thousand jobs each, and read nothing for a while."""
    running, port, key = process
    others = [mint() for _ in range(4)]
    for other in others:
        store.run(calls.create_key(other.id, other.hash, other.id, ["work"]))
    keys = [key, *[other.text for other in others]] * 8
    documents = ['{"a": "' + "x" * (size - 9) + '"}' for size in sizes]
    times = min(40, 20 * MIB // sum(sizes))
    for _ in range(4):
        store.run(calls.enqueue_many([new_job(args=args) for _ in range(times) for args in documents]))

    async def test() -> int:
        channels = [
            grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)])
            for _ in range(40)
        ]
        places = [
            ServerUnderTest(channel, key, "default") for channel, key in zip(channels, keys, strict=True)
        ]
        talks = [place.stream() for place in places]
        for talk, place in zip(talks, places, strict=True):
            await talk.say(hello=place.hello())
        for talk in talks:
            await talk.hear("welcome")
        before = _peak(running)
        for talk in talks:
            for number in range(8):
                await talk.say(ask={"id": number + 1, "room": 1_000, "wait_ms": 3_000})
        await asyncio.sleep(6.0)
        for channel in channels:
            await channel.close()
        return _peak(running) - before

    grown = asyncio.run(test())
    assert grown < 60_000_000, f"{grown:,} bytes"


def test_a_key_takes_no_more_of_the_room_than_it_leaves_free():
    async def test():
        budget = PayloadBudget(6 * MIB, 5 * MIB)
        assert all([await budget.room("a", 0.0) for _ in range(3)])
        assert await budget.room("a", time.monotonic() + 0.05) is None
        assert all([await budget.room(whose, time.monotonic() + 20) for whose in "bcd"])

    asyncio.run(test())


def test_the_key_that_has_least_on_its_way_is_next_and_equals_take_turns():
    async def test():
        budget = PayloadBudget(2 * MIB, 2 * MIB)
        loads = [await budget.room(whose, time.monotonic() + 20) for whose in "ab"]
        served: list[str] = []

        async def wait(whose):
            load = await budget.room(whose, time.monotonic() + 20)
            served.append(whose)
            load.release()

        waiting = [asyncio.create_task(wait(whose)) for whose in "aaabbbc"]
        await asyncio.sleep(0)
        loads[0].release()
        loads[1].release()
        await asyncio.gather(*waiting)
        assert "c" in served[:3], served
        assert (budget._total, budget._line) == (0, {})

    asyncio.run(test())


UNREAD = {"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 1024}


def _unread_lease(place, key, queue):
    """A Lease whose answer is not read: the same call on the wire, opened as if more answers could come."""
    call = place.channel(**UNREAD).unary_stream("/faultline.rpc.v1.Workers/Lease")
    ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=[queue]), lease_ms=600_000)
    return call(ask.SerializeToString(), metadata=(("authorization", f"Bearer {key}"),), timeout=300)


async def _hold_all_the_room(place, keys):
    await place.store.run(calls.enqueue_many([new_job(args=LARGE)] * len(keys)))
    budget, held = place.server.service.assigner.payload_budget, []
    for number, key in enumerate(keys):
        held.append(_unread_lease(place, key, "default"))
        while len(budget._writing) <= number:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return held


def test_lease_answers_that_are_not_read_leave_room_for_the_other_keys(served):
    """Two keys, with four answers of a mebibyte: these took all of it, for as long as the call's deadline."""

    async def test(place):
        one, other = [await place.key_for("work") for _ in range(2)]
        held = await _hold_all_the_room(place, [one, one, one, other])
        await place.store.run(calls.enqueue(new_job(queue="quick")))
        way = place.place(queue="quick")
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=["quick"], wait_ms=20_000))
        assert len((await way.ask(way.workers.Lease, ask)).jobs) == 1
        assert len(held) == 4

    served(test)


def test_many_keys_that_do_not_read_are_hung_up_on_and_their_jobs_come_back(served):
    """Each key that waits for room gives those who hold it five seconds; afterwards nothing of it is left."""

    async def test(place):
        keys = [await place.key_for("work") for _ in range(6)]
        held = await _hold_all_the_room(place, keys)
        budget = place.server.service.assigner.payload_budget
        await place.store.run(calls.enqueue(new_job(queue="quick")))
        way = place.place(queue="quick")
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=["quick"], wait_ms=25_000))
        assert len((await way.ask(way.workers.Lease, ask)).jobs) == 1
        assert {await call.code() for call in held} == {grpc.StatusCode.UNAVAILABLE}
        assert budget._total == 0
        async with asyncio.timeout(20):
            while (await place.store.run(calls.backlog("default"))) < len(keys):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    served(test)
