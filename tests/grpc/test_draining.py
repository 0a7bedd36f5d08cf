"""A server that leaves: it grants no more jobs, tells every session, and still takes open results."""

import asyncio
import time

import grpc
from psycopg.errors import QueryCanceled

from faultline.lab.conformance.scripted_worker import ServerUnderTest, done
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.grpc import grpc_server
from faultline.store import calls
from faultline.store.driver.connect import acheck_server as really
from tests.support import new_job

Code = grpc.StatusCode


def test_a_drained_worker_is_told_and_may_still_settle(served):
    async def test(place):
        await place.store.run(calls.enqueue(new_job()))
        way = place.place()
        async with way.session() as talk:
            job = await talk.take()
            await talk.say(ask=worker_pb2.Ask(id=99, room=1, wait_ms=20_000))
            stopping = asyncio.create_task(place.server.stop(20.0))

            drain = (await talk.hear("notice")).notice.drain
            assert 0 < drain.grace_ms <= 20_000
            assert not (await talk.hear("assignments")).assignments.jobs
            await place.store.run(calls.enqueue(new_job()))
            assert not (await talk.ask(wait_ms=5_000)).jobs
            assert (await talk.settle(done(job))).accepted == 1
            await talk.say(goodbye=worker_pb2.Goodbye())
            assert await talk.ended() is Code.OK
        before = time.monotonic()
        await stopping
        assert time.monotonic() - before < 10

    served(test)


def test_a_draining_server_opens_no_session_and_leases_nothing(served):
    async def test(place):
        await place.store.run(calls.enqueue(new_job()))
        way = place.place()
        async with way.session() as talk:
            stopping = asyncio.create_task(place.server.stop(30.0))  # it ends with the last session
            await talk.hear("notice")
            other = way.stream()
            await other.say(hello=way.hello())
            assert await other.ended() is Code.UNAVAILABLE
            ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=["default"], wait_ms=5_000))
            assert not (await way.ask(way.workers.Lease, ask)).jobs
        await stopping

    served(test)


def test_a_worker_that_stays_is_cut_after_the_grace(served):
    async def test(place):
        async with place.place().session() as talk:
            before = time.monotonic()
            await place.server.stop(0.5)
            assert time.monotonic() - before < 10
            assert await talk.ended() in (Code.UNAVAILABLE, Code.CANCELLED, Code.UNKNOWN)

    served(test)


def test_an_old_session_is_asked_to_come_again(served):
    async def test(place):
        async with place.place().session() as talk:
            assert (await talk.hear("notice")).notice.WhichOneof("news") == "drain"

    served(test, connection_seconds_max=0.3, connection_grace_seconds=30.0, key_check_seconds=0.1)


def test_a_cancelled_jobs_worker_is_told_at_once(served):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        way: ServerUnderTest = place.place()
        async with way.session() as talk:
            job = await talk.take()
            await way.ask(
                way.jobs.Cancel, client_pb2.CancelRequest(id=job_id, reason="a customer asked for it")
            )
            told = (await talk.hear("notice")).notice.cancel
            assert (told.job_id, told.token, told.claim) == (job.id, job.token, job.claim)
        acts = await place.store.run(calls.acts())
        assert [(act.verb, act.reason) for act in acts if act.verb == "cancel"] == [
            ("cancel", "a customer asked for it")
        ]

    served(test)


def test_wake_ups_reach_the_sessions_that_asked_for_them(served):
    async def test(place):
        way = place.place()
        async with way.session(wakes=True) as talk, way.session() as other:
            await place.store.run(calls.wake("elsewhere"))
            await place.store.run(calls.wake("default"))
            heard = set()
            while "default" not in heard:
                notice = (await talk.hear("notice")).notice
                heard.add(notice.wake if notice.WhichOneof("news") == "wake" else "deaf")
            assert "elsewhere" not in heard
            assert not [message for message in other._heard if message.WhichOneof("message") == "notice"]

    served(test)


def test_the_health_service_says_when_it_leaves(served):
    async def test(place):
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        way = place.place()
        stub = health_pb2_grpc.HealthStub(way.channel)
        request = health_pb2.HealthCheckRequest(service="faultline.rpc.v1.Workers")
        async with asyncio.timeout(60):
            while (await stub.Check(request, timeout=60)).status != health_pb2.HealthCheckResponse.SERVING:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        async with way.session():
            stopping = asyncio.create_task(place.server.stop(60.0))  # it ends with the last session
            async with asyncio.timeout(30):
                while (  # noqa: ASYNC110
                    await stub.Check(request, timeout=30)
                ).status != health_pb2.HealthCheckResponse.NOT_SERVING:
                    await asyncio.sleep(0.05)
        await stopping

    served(test)


def test_reflection_names_both_services(served):
    async def test(place):
        from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

        stub = reflection_pb2_grpc.ServerReflectionStub(place.channel())

        async def asked():
            yield reflection_pb2.ServerReflectionRequest(list_services="")

        async for answer in stub.ServerReflectionInfo(asked(), timeout=60):
            names = {service.name for service in answer.list_services_response.service}
        assert {"faultline.rpc.v1.Workers", "faultline.rpc.v1.Jobs", "grpc.health.v1.Health"} <= names

    served(test)


def test_the_health_service_outlives_whatever_the_database_does(served, monkeypatch):
    """The same holds for an error without a name of ours, such as a statement's timeout."""
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    words = health_pb2.HealthCheckResponse
    trouble: list[Exception] = []

    async def agreet(conn):
        if trouble:
            raise trouble[0]
        await really(conn)

    monkeypatch.setattr(grpc_server, "HEALTH_EVERY", 0.05)
    monkeypatch.setattr(grpc_server, "acheck_server", agreet)

    async def test(place):
        stub = health_pb2_grpc.HealthStub(place.place().channel)

        async def says(word):
            async with asyncio.timeout(60):
                while (await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)).status != word:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

        await says(words.SERVING)
        for error in (QueryCanceled("timeout"), RuntimeError("an unforeseen error")):
            trouble[:] = [error]
            await says(words.NOT_SERVING)
            trouble.clear()
            await says(words.SERVING)

    served(test)


def test_a_listener_that_fails_keeps_no_other_from_hearing(served):
    async def test(place):
        heard: list[str | None] = []
        told: list[str | None] = []

        def fails(queue):
            """The first call fails and costs the connection; the second fails there and ends the listener."""
            told.append(queue)
            if len(told) == 2:
                place.server.wait_queue.subscribers.discard(fails)
            raise RuntimeError("an unforeseen error")

        place.server.wait_queue.subscribers.add(fails)
        place.server.wait_queue.subscribers.add(heard.append)
        async with asyncio.timeout(60):
            for is_so in (
                lambda: fails not in place.server.wait_queue.subscribers,
                lambda: "default" in heard,
            ):
                heard.clear()
                while not is_so():
                    await place.store.run(calls.wake("default"))
                    await asyncio.sleep(0.05)

    served(test)
