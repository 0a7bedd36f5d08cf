"""S6 and S7 at full size: ten thousand connections, requests and streams at a server as it comes."""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest

from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.limits import Limits
from proof.cases.crowd import MANY, MIB, besieged, code_of, fetched, heard, knock, room_for_many_files

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")

LOST_MAX = 200
"""Refusals that the system may throw away, since they crossed with what the client was still saying."""

OTHER_FILES_MAX = 120
"""Connections to the database, sockets of loops, files of the program: what is not a client's."""


@pytest.fixture
def place(database):
    room_for_many_files()
    with besieged(database) as running:
        yield running


def told(what, place, before, **more):
    """For `pytest -s`: the figures of docs/cases.md."""
    facts = {"memory before": before // MIB, "and now": place.memory // MIB, "files": place.files, **more}
    print(f"\n{what}: {facts}")


def is_served(place, key=None):
    began = time.monotonic()
    assert b" 200 " in fetched(place.http, "/api/v1/jobs", key)[:20]
    return round(time.monotonic() - began, 2)


def test_s6_ten_thousand_idle_and_slow_connections_are_bounded_and_others_served(place):
    """Half say nothing, half send a head that never ends; both are pushed out, or cut off by name."""
    is_served(place)
    before, most, waits = place.memory, 0, []

    with ExitStack() as stack:
        crowd = []
        for number in range(MANY):
            say = b"GET /api/v1/jobs HTTP/1.1\r\nx-slow: a" if number % 2 else b""
            crowd.append(stack.enter_context(knock(place.http, say)))
            if number % 1_000 == 999:
                waits.append(is_served(place))
                most = max(most, place.files)
        told("idle and slow connections", place, before, waits=max(waits), most_files=most)
        grown = place.memory - before
        time.sleep(Limits().head_seconds_max + 1)
        answers = Counter(kind_of(heard(sock)) for sock in crowd)
        print(answers)

    assert most <= Limits().connections_max + OTHER_FILES_MAX
    assert grown < 64 * MIB
    assert answers["overloaded"] >= MANY - Limits().connections_max - LOST_MAX
    assert 0 < answers["too_slow"] <= Limits().connections_max
    assert answers["pushed out"] <= LOST_MAX
    assert max(waits) < 10


def kind_of(said):
    if said is None:
        return "held"
    for name in (b"too_slow", b"overloaded", b"too_many"):
        if name in said:
            return name.decode()
    return "pushed out" if said == b"" else said.decode(errors="replace")


def test_s6_of_ten_thousand_slow_bodies_one_key_holds_its_share_and_the_rest_are_told(place):
    greedy, good = place.key("enqueue"), place.key("read")
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {greedy}\r\ncontent-length: 100\r\n\r\n"
    )
    is_served(place, good)
    before, waits = place.memory, []

    with ExitStack() as stack:
        crowd = []
        for number in range(MANY):
            crowd.append(stack.enter_context(knock(place.http, head.encode() + b'{"task"')))
            if number % 1_000 == 999:
                waits.append(is_served(place, good))
        grown = place.memory - before
        told("slow bodies", place, before, waits=max(waits))
        answers = Counter(kind_of(heard(sock, 0.01)) for sock in crowd)
        print(answers)

    assert grown < 64 * MIB
    assert answers["too_many"] > 0
    assert answers["held"] <= Limits().calls_at_once_per_key
    assert max(waits) < 10


async def settle_in(way, streams):
    """The admitted clients say hello, and nothing more; one without a hello is cut off after ten seconds."""
    await asyncio.gather(*(code_of(stream, 2) for stream in streams))
    for stream in streams:
        if not stream.done():
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await stream.write(worker_pb2.FromWorker(hello=way.hello(worker=1)))


@pytest.mark.parametrize("pace", ["one connection after another", "all at once"])
def test_s7_of_ten_thousand_sessions_one_key_has_its_share_and_the_rest_are_told(place, pace):
    """In a burst gRPC itself drops calls that come too fast, as CANCELLED."""
    limits = GrpcConfig()

    async def siege():
        greedy, good = place.key("work"), place.key("work", "enqueue", "read")
        other = place.place(good)
        assert await other.submit() > 0
        before = place.memory
        per = limits.streams_per_connection_max
        ways = [place.place(greedy) for _ in range(MANY // per)]
        streams = []
        for way in ways:
            opened = [way.workers.Session(metadata=way.metadata) for _ in range(per)]
            streams += opened
            if pace == "one connection after another":
                await settle_in(way, opened)
        if pace == "all at once":
            await settle_in(ways[0], streams)
        codes = Counter(await asyncio.gather(*(code_of(stream, 30) for stream in streams)))
        began = time.monotonic()
        job = await other.submit()
        async with other.session() as talk:
            assert (await talk.take()).id in (job, job - 1)
        grown = place.memory - before
        told("sessions", place, before, codes=codes, served_in=round(time.monotonic() - began, 2))
        for stream in streams:
            stream.cancel()
        await place.close()
        return codes, grown

    codes, grown = asyncio.run(siege())

    assert codes[None] == limits.sessions_per_key
    refused = codes[grpc.StatusCode.RESOURCE_EXHAUSTED]
    if pace == "all at once":
        assert refused > 0
        refused += codes[grpc.StatusCode.CANCELLED]
    assert refused == MANY - limits.sessions_per_key
    assert grown < 128 * MIB


def test_s7_ten_thousand_connections_that_say_nothing_take_neither_door_away(place):
    limits = GrpcConfig()
    key = place.key("work", "enqueue", "read")
    is_served(place)
    before, most = place.memory, 0

    with ExitStack() as stack:
        for number in range(MANY):
            stack.enter_context(knock(place.rpc))
            if number % 1_000 == 999:
                is_served(place)
                most = max(most, place.files)
        told("silent connections", place, before, most_files=most)
        grown = place.memory - before
        waited = asyncio.run(served_at_last(place, key))
        print("served after", waited)

    assert most <= limits.connections_max + OTHER_FILES_MAX
    assert grown < 128 * MIB
    assert waited < 60


async def served_at_last(place, key):
    """How long a well-behaved client waits, while the crowd is still there."""
    began = time.monotonic()
    while True:
        try:
            assert await place.place(key).submit() > 0
            break
        except grpc.aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
        assert time.monotonic() - began < 120
        await asyncio.sleep(0.2)
    await place.close()
    return round(time.monotonic() - began, 1)
