"""Case S7: what is too big, too many, too fast or without end is refused by name, and memory stays flat."""

import asyncio
import os
import socket
import struct
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest

from faultline.lab.conformance.status_details import problem_in
from faultline.lab.conformance.verdict import Broken
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.grpc import GrpcConfig
from faultline.server.grpc.guard import connection_limits
from faultline.store import calls
from tests.support import new_job

Code = grpc.StatusCode
MIB = 1_048_576
GROWTH_MAX = 40 * MIB

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY = 4, 6, 7


def memory() -> int:
    """What this process holds in memory, the server in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def frame(kind: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + bytes(4) + payload


async def frames(reader: asyncio.StreamReader):
    """The frames a server sends, until it hangs up."""
    while True:
        try:
            head = await reader.readexactly(9)
            yield head[3], await reader.readexactly(int.from_bytes(head[:3], "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return


def test_s7_a_message_of_five_mebibytes_is_refused_and_forgotten(served):
    async def test(place):
        way = place.place()
        huge = client_pb2.SubmitRequest(job=client_pb2.NewJob(task="t", args=b"x" * (5 * MIB)))
        before = 0
        for number in range(12):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await way.ask(way.jobs.Submit, huge)
            assert caught.value.code() is Code.RESOURCE_EXHAUSTED
            if number == 4:  # by now whatever is kept for the next one is there
                before = memory()
        assert memory() - before < GROWTH_MAX
        assert await way.submit() > 0

    served(test)


def test_s7_a_stream_that_sends_five_mebibytes_is_ended(served):
    async def test(place):
        async with place.place().session() as talk:
            item = worker_pb2.Result(
                job_id=1, token=1, claim=bytes(16), done=worker_pb2.Done(result=b"1" * 5 * MIB)
            )
            await talk.say(results=worker_pb2.Results(id=1, items=[item]))
            assert await talk.ended() is Code.RESOURCE_EXHAUSTED

    served(test)


def test_s7_more_streams_than_a_connection_has_wait_outside(served):
    async def test(place):
        way = place.place()
        before = memory()
        talks = [way.stream() for _ in range(300)]
        saying = [asyncio.create_task(talk.say(hello=way.hello())) for talk in talks]
        await asyncio.wait(saying, timeout=2.0)
        assert len(place.server.workers.sessions) <= 100
        assert memory() - before < GROWTH_MAX
        other = place.place()
        assert await other.submit() > 0
        for task in saying:  # those outside would wait for room until the end of the test
            task.cancel()
        for talk in talks:
            talk.cut()

    served(test)


def test_s7_rapid_resets_cost_no_memory_and_no_service(served):
    async def test(place):
        way = place.place()
        await way.submit()
        before = memory()
        for _ in range(20):
            calls = [
                way.jobs.Get(client_pb2.GetRequest(id=1), metadata=way.metadata, timeout=60)
                for _ in range(100)
            ]
            await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert memory() - before < GROWTH_MAX
        async with asyncio.timeout(60):
            while not await _served(way):  # noqa: ASYNC110 - streams that are still being closed count
                await asyncio.sleep(0.05)
            while place.server.guard.rate_limiter.in_hand():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    served(test)


async def _served(way):
    try:
        return await way.submit() > 0
    except grpc.aio.AioRpcError as error:
        if error.code() is not Code.UNAVAILABLE:
            raise
        return False


def test_s7_a_flood_of_pings_is_told_to_calm_down(served):
    async def test(place):
        reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
        writer.write(PREFACE + frame(SETTINGS))
        before = memory()

        async def flood():
            with suppress(ConnectionError):
                for _ in range(10_000):
                    writer.write(frame(PING, bytes(8)))
                    await asyncio.sleep(0.001)  # so that what it says is read before it hangs up

        flooding = asyncio.create_task(flood())
        said = [payload async for kind, payload in frames(reader) if kind == GOAWAY]
        flooding.cancel()
        writer.close()

        assert said
        assert b"too_many_pings" in said[-1]
        assert int.from_bytes(said[-1][4:8], "big") == 11  # ENHANCE_YOUR_CALM
        assert memory() - before < GROWTH_MAX
        assert await place.place().submit() > 0

    served(test)


def test_s7_what_is_no_http2_is_hung_up_on(served):
    async def test(place):
        for noise in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes(64), PREFACE + b"\xff" * 100):
            reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
            writer.write(noise)
            async with asyncio.timeout(30):
                while await reader.read(4096):
                    pass
            writer.close()

    served(test)


def test_s7_connections_that_say_nothing_are_bounded_and_closed(served):
    """Each is a file of the server's, and its HTTP API uses the same files."""

    async def bounded(place):
        async with _silent(place, 60) as hung_up, asyncio.timeout(30):
            while sum(task.done() for task in hung_up) < 40:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def closed(place):
        async with _silent(place, 60) as hung_up, asyncio.timeout(60):
            await asyncio.gather(*hung_up, return_exceptions=True)
            while not await _served(place.place()):
                pass

    served(bounded, connections_max=20, handshake_seconds_max=300.0)
    served(closed, connections_max=20, handshake_seconds_max=1.0)


@asynccontextmanager
async def _silent(place, many):
    """Connections that say nothing, each with a task that ends when the server hangs up."""
    made = [await asyncio.open_connection("127.0.0.1", place.server.port) for _ in range(many)]
    reading = [asyncio.create_task(reader.read()) for reader, _ in made]
    yield reading
    for task in reading:
        task.cancel()
    for _, writer in made:
        writer.close()


@pytest.mark.skipif(not Path(connection_limits.FILES).exists(), reason="files are counted in /proc")
def test_s7_connections_are_looked_at_sooner_while_many_come(monkeypatch):
    """4,000 a second filled every place between two looks, a second apart."""
    monkeypatch.setattr(connection_limits, "LOOK_EVERY_SECONDS", 3_600.0)
    looks: asyncio.Queue[int] = asyncio.Queue()

    async def test():
        watched = connection_limits.Connections(GrpcConfig(unadmitted_max=500))
        monkeypatch.setattr(watched, "look", looks.put_nowait)
        watching = asyncio.create_task(watched.watch(1))
        assert await looks.get() == 1
        await asyncio.sleep(0.3)
        assert looks.empty()
        with ExitStack() as new:
            for _ in range(100):
                new.enter_context(socket.socket())
            async with asyncio.timeout(30):
                assert await looks.get() == 1
        watching.cancel()

    asyncio.run(test())


def test_s7_a_client_whose_idle_connection_was_closed_notices_nothing(served):
    async def test(place):
        way = place.place()
        await way.submit()
        async with asyncio.timeout(60):
            while way.channel.get_state() is not grpc.ChannelConnectivity.IDLE:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await way.submit() > 0

    served(test, idle_seconds_max=0.5)


def test_s7_every_unary_call_needs_a_deadline(served):
    async def test(place):
        way = place.place()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await way.jobs.Get(client_pb2.GetRequest(id=1), metadata=way.metadata)
        assert problem_in(caught.value).code == "no_deadline"

    served(test)


def test_s7_a_worker_that_does_not_wait_for_answers_is_cut_off(served):
    async def test(place):
        async with place.place().session() as talk:
            for id in range(1, 6):
                await talk.say(ask=worker_pb2.Ask(id=id, room=1, wait_ms=20_000))
            assert await talk.ended() is Code.RESOURCE_EXHAUSTED

    served(test, unanswered_max=4)


def test_s7_a_reader_that_never_reads_piles_nothing_up(served):
    """Flow control holds its answers back, and the bound on unanswered messages ends it."""

    async def test(place):
        text = '{"text": "%s"}' % ("x" * 900_000)
        for _ in range(30):
            await place.store.run(calls.enqueue(new_job(args=text)))
        before = memory()
        async with place.place().session() as talk:
            with suppress(Broken):
                for id in range(1, 60):
                    await talk.say(ask=worker_pb2.Ask(id=id, room=1))
            await asyncio.sleep(1.0)
            assert memory() - before < 3 * GROWTH_MAX

    served(test, unanswered_max=8)


def test_s7_a_session_that_never_says_hello_holds_no_place(served):
    async def test(place):
        talk = place.place().stream()
        code = await talk.ended()
        assert code is Code.DEADLINE_EXCEEDED
        assert not place.server.workers.sessions

    served(test, hello_seconds_max=0.2)


@pytest.mark.parametrize(
    "message",
    [
        {"ask": worker_pb2.Ask(id=1, room=0)},
        {"ask": worker_pb2.Ask(id=1, room=1001)},
        {"ask": worker_pb2.Ask(id=1, room=1, claim=b"short")},
        {"ask": worker_pb2.Ask(id=1, room=1, again=True)},
        {"beat": worker_pb2.Beat(id=1, leases=[worker_pb2.Proof(job_id=1, token=1, claim=b"")])},
        {"results": worker_pb2.Results(id=1, items=[worker_pb2.Result(job_id=1, token=1, claim=bytes(16))])},
        {"hello": worker_pb2.Hello(protocol=1)},
        {},
    ],
    ids=[
        "room_0",
        "room_1001",
        "short_claim",
        "again_without_claim",
        "no_claim",
        "no_outcome",
        "hello_twice",
        "empty",
    ],
)
def test_nonsense_ends_the_stream_by_name(served, message):
    async def test(place):
        async with place.place().session() as talk:
            await talk.say(**message)
            assert await talk.ended() is Code.INVALID_ARGUMENT

    served(test)


def test_an_unforeseen_error_tells_its_id_and_nothing_else(served, caplog):
    async def test(place):
        async def broken(job_id, caller, scope):
            raise RuntimeError("select secret from faultline.active where password = 'hunter2'")

        place.server.jobs._find = broken
        way = place.place()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await way.info(1)
        problem = problem_in(caught.value)
        assert (caught.value.code(), problem.code) == (Code.INTERNAL, "unforeseen")
        assert "secret" not in str(caught.value)
        assert problem.id in caplog.text

    served(test)
