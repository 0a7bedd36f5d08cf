"""Messages that are held: of a session few and only as long as needed, of a call that lasts none."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import grpc
import pytest

from faultline.lab.conformance.verdict import Broken
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.grpc import jobs_service
from faultline.server.grpc.guard.keyless_calls import KeylessCalls
from faultline.server.grpc.guard.message_bounds import (
    LARGE_BYTES,
    LIST_BYTES_MAX,
    MessageBound,
    UnparsedMessage,
)
from faultline.server.problems import RequestRefused
from faultline.store import calls

Code = grpc.StatusCode
LONG_TEXT = "x" * (LIST_BYTES_MAX + 1)
HEALTH = "/grpc.health.v1.Health/Check"


@pytest.mark.parametrize(
    "said",
    [
        {"ask": worker_pb2.Ask(id=1, room=1, wait_ms=30_000, trace=LONG_TEXT)},
        {"beat": worker_pb2.Beat(id=1, leases=[worker_pb2.Proof(claim=LONG_TEXT.encode())])},
        {"hello": worker_pb2.Hello(version=LONG_TEXT)},
    ],
)
def test_only_results_of_a_session_are_long(served, said):
    async def test(place):
        async with place.place().session() as talk:
            await talk.say(**said)
            assert await talk.ended() is Code.RESOURCE_EXHAUSTED

    served(test)


def test_a_long_hello_opens_no_session(served):
    async def test(place):
        way = place.place()
        talk = way.stream()
        with suppress(Broken):
            await talk.say(hello=way.hello(version=LONG_TEXT))
        assert await talk.ended() is Code.RESOURCE_EXHAUSTED

    served(test)


def test_large_results_of_sessions_are_so_many_of_one_key(served, monkeypatch):
    """Those of all its sessions together; the others are read when these are recorded."""

    async def test(place):
        settling, go = place.server.service.settling, asyncio.Event()
        settle, under_way = settling.settle, []

        async def held_up(id: int, *rest: Any) -> Any:
            under_way.append(id)
            await go.wait()
            return await settle(id, *rest)

        monkeypatch.setattr(settling, "settle", held_up)
        done = worker_pb2.Done(result=b'"' + b"x" * LARGE_BYTES + b'"')
        item = worker_pb2.Result(job_id=1, token=1, claim=bytes(16), done=done)
        async with place.place().session() as first, place.place().session() as second:
            for talk in (first, second):
                for id in (1, 2, 3):
                    await talk.say(results=worker_pb2.Results(id=id, items=[item]))
            async with asyncio.timeout(30):
                while len(under_way) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            assert len(under_way) == 2
            other = place.place(await place.key_for("work", queues=("default",)))
            async with other.session() as third:  # another key has places of its own
                await third.say(results=worker_pb2.Results(id=9, items=[item]))
                async with asyncio.timeout(30):
                    while 9 not in under_way:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                go.set()
                for talk, answers in ((first, 3), (second, 3), (third, 1)):
                    for _ in range(answers):
                        await talk.hear("settled")

    served(test, messages_at_once_per_key=2)


def test_results_that_a_session_leaves_behind_take_no_place(served, monkeypatch):
    async def test(place):
        settling, go = place.server.service.settling, asyncio.Event()
        settle, under_way = settling.settle, []

        async def held_up(*asked: Any) -> Any:
            under_way.append(asked)
            await go.wait()
            return await settle(*asked)

        monkeypatch.setattr(settling, "settle", held_up)
        done = worker_pb2.Done(result=b'"' + b"x" * LARGE_BYTES + b'"')
        item = worker_pb2.Result(job_id=1, token=1, claim=bytes(16), done=done)
        for _ in range(3):
            async with place.place().session() as talk:
                for id in (1, 2, 3):
                    await talk.say(results=worker_pb2.Results(id=id, items=[item]))
                await asyncio.sleep(0.3)
        go.set()
        async with place.place().session() as talk:
            await talk.settle(item)

    served(test, messages_at_once_per_key=2)


def test_long_polls_keep_no_place_for_their_messages(served):
    async def test(place):
        way, other = place.place(), place.place()
        ask = worker_pb2.Ask(id=1, room=1, wait_ms=20_000, queues=["empty"], trace="x" * (2 * LARGE_BYTES))
        polls = [
            asyncio.create_task(way.ask(way.workers.Lease, worker_pb2.LeaseRequest(ask=ask), 60))
            for _ in range(4)
        ]
        await asyncio.sleep(1.0)
        assert await other.submit() > 0
        assert not any(poll.done() for poll in polls)
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    served(test, messages_at_once_max=2, messages_at_once_per_key=2, message_seconds_max=5.0)


def test_a_key_that_is_revoked_while_its_message_is_on_its_way_does_nothing(served):
    async def test(place):
        key = await place.key_for("enqueue")
        asked = client_pb2.SubmitRequest(job=client_pb2.NewJob(task="t", queue="late")).SerializeToString()

        async def late():
            await asyncio.sleep(3.5)
            yield asked

        submit: Any = place.channel().stream_unary("/faultline.rpc.v1.Jobs/Submit")
        call = submit(late(), metadata=(("authorization", f"Bearer {key}"),), timeout=60)
        await asyncio.sleep(0.3)
        await place.store.run(calls.revoke_key(key.split("_")[1]))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() is Code.UNAUTHENTICATED

    served(test)


def test_probes_that_bring_no_message_keep_no_probe_waiting(served):
    async def test(place):
        async def never():
            await asyncio.sleep(30)
            yield b""

        silent: Any = place.channel().stream_unary(HEALTH)
        held = [asyncio.ensure_future(silent(never(), timeout=30)) for _ in range(90)]
        await asyncio.sleep(0.3)
        check: Any = place.channel().unary_unary(HEALTH)
        for _ in range(5):
            assert await check(b"", timeout=10) == b"\x08\x01"
        async with asyncio.timeout(30):
            assert {type(one) for one in await asyncio.gather(*held, return_exceptions=True)} == {
                grpc.aio.AioRpcError
            }

    served(test, trust_loopback=False)


def test_answers_that_are_not_read_are_so_many_of_one_key_and_end(served, monkeypatch):
    """A Get of a mebibyte, opened as if more answers could come: 200 took 475 MB for 45 s."""
    monkeypatch.setattr(jobs_service, "READ_SECONDS_MAX", 4.0)

    async def test(place):
        way, other = place.place(), place.place(await place.key_for("read"))
        id = await way.submit(args=b'{"a": "' + b"x" * 1_000_000 + b'"}')
        unread = {"grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 1024}
        get: Any = place.channel(**unread).unary_stream("/faultline.rpc.v1.Jobs/Get")
        asked = client_pb2.GetRequest(id=id).SerializeToString()
        held = [get(asked, metadata=way.metadata, timeout=300) for _ in range(30)]
        answers = place.server.jobs.answers
        async with asyncio.timeout(30):
            while len(answers._writing) < 16:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await other.info(id)).id == id
        assert len(answers._writing) <= 16
        async with asyncio.timeout(40):
            while answers._writing or answers._total:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await way.info(id)).id == id
        for call in held:
            call.cancel()

    served(test)


class Late:
    """A probe whose message comes when told."""

    def __init__(self):
        self.comes = asyncio.Event()

    async def read(self):
        await self.comes.wait()
        return UnparsedMessage(b"", worker_pb2.Goodbye.FromString, MessageBound(10))


def test_the_oldest_probe_of_the_greediest_address_makes_room():
    async def test():
        probes, greedy, modest = KeylessCalls(3), [Late() for _ in range(3)], Late()
        reading = [asyncio.create_task(probes.message(cast(Any, modest), "modest"))]
        await asyncio.sleep(0.05)
        reading += [asyncio.create_task(probes.message(cast(Any, one), "greedy")) for one in greedy]
        with pytest.raises(RequestRefused, match="too_slow"):
            await reading[1]
        assert not any(one.done() for one in (reading[0], *reading[2:]))
        for one in (modest, *greedy):
            one.comes.set()
        await asyncio.gather(reading[0], *reading[2:])
        assert not probes._reading

    asyncio.run(test())


def test_probes_wait_in_a_short_line():
    async def test():
        probes, late = KeylessCalls(1, line_max=2), Late()
        reading = [asyncio.create_task(probes.message(cast(Any, late), "one")) for _ in range(5)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(RequestRefused, match="too_many"):
            await reading[4]
        late.comes.set()
        await asyncio.gather(*reading, return_exceptions=True)
        assert not probes._line

    asyncio.run(test())
