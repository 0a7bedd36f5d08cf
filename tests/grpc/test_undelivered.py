"""Jobs claimed for a worker that is gone come back at once, with their attempt; other jobs do not."""

import asyncio

import grpc
import pytest
from psycopg.errors import DeadlockDetected

from faultline.errors import NotAuthenticated
from faultline.lab.conformance.scripted_worker import done
from faultline.rpc.v1 import worker_pb2
from faultline.store import calls
from tests.support import new_job


class Slow:
    """A store whose claims are held up after they were granted, until they are let go."""

    def __init__(self, store):
        self._store = store
        self.granted = asyncio.Event()
        self.go = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def run(self, call, hint=None):
        answer = await self._store.run(call, hint)
        if call.name == "claim" and answer:
            self.granted.set()
            await self.go.wait()
        return answer


async def _until(true):
    async with asyncio.timeout(60):
        while not await true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_a_job_claimed_for_a_stream_that_is_gone_comes_back_at_once(served):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        slow = place.server.service.assigner._store = Slow(place.store)
        way = place.place()

        async with way.session() as talk:
            await talk.say(ask=worker_pb2.Ask(id=1, room=1))
            await slow.granted.wait()
        await _until(lambda: _no_session(place))
        slow.go.set()

        async def queued():
            return (await place.store.run(calls.get(job_id))).state == "queued"

        await _until(queued)
        entries = await place.store.run(calls.history(job_id))
        assert [entry.outcome for entry in entries] == ["released"]
        async with way.session() as talk:
            again = await talk.take()
            assert (again.id, again.attempt) == (job_id, 1)
            assert (await talk.settle(done(again))).accepted == 1

    served(test)


async def _no_session(place):
    return not place.server.workers.sessions


def test_a_long_poll_whose_caller_hung_up_leaves_no_job_behind(served):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        slow = place.server.service.assigner._store = Slow(place.store)
        way = place.place()
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=["default"]))

        polling = asyncio.ensure_future(way.ask(way.workers.Lease, ask))
        await slow.granted.wait()
        polling.cancel()
        await asyncio.sleep(0.2)
        slow.go.set()

        async def queued():
            return (await place.store.run(calls.get(job_id))).state == "queued"

        await _until(queued)

    served(test)


async def _came_back(place, job_id):
    """Wait until a job is in its line again; how it came there."""

    async def queued():
        return (await place.store.run(calls.get(job_id))).state == "queued"

    await _until(queued)
    return [entry.outcome for entry in await place.store.run(calls.history(job_id))]


def test_jobs_claimed_while_a_long_poll_s_key_is_found_revoked_come_back_at_once(served):
    """The look at the key takes a while, and the claim may be granted in it."""

    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        slow = place.server.service.assigner._store = Slow(place.store)
        way, guard = place.place(), place.server.workers.guard
        known = guard.known

        async def revoked(context):
            if slow.granted.is_set():
                slow.go.set()
                await asyncio.sleep(0.3)  # the poll ends with its job meanwhile
                raise NotAuthenticated("this key opens nothing")
            return await known(context)

        guard.known = revoked
        ask = worker_pb2.LeaseRequest(
            ask=worker_pb2.Ask(room=1, queues=["default"], wait_ms=5_000), lease_ms=600_000
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await way.ask(way.workers.Lease, ask)

        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert await _came_back(place, job_id) == ["released"]
        assert not place.server.service.assigner.payload_budget._held

    served(test, key_check_seconds=0.05)


def test_a_caller_that_hangs_up_while_the_rest_goes_back_leaves_no_job_behind(served):
    """Of jobs that one message does not hold the rest goes back; then none of them is delivered."""

    async def test(place):
        text = '{"text": "%s"}' % ("x" * 90_000)
        ids = [await place.store.run(calls.enqueue(new_job(args=text))) for _ in range(6)]
        assigner, way = place.server.service.assigner, place.place()
        hand_back, begun, go = assigner.hand_back, asyncio.Event(), asyncio.Event()

        async def slowly(jobs):
            begun.set()
            await go.wait()
            await hand_back(jobs)

        assigner.hand_back = slowly
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=6, queues=["default"]), lease_ms=600_000)
        polling = asyncio.ensure_future(way.ask(way.workers.Lease, ask))
        await begun.wait()
        polling.cancel()
        await asyncio.sleep(0.2)
        go.set()

        assert [await _came_back(place, job_id) for job_id in ids] == [["released"]] * 6

    served(test, message_bytes_max=400_000)


def test_what_a_cut_worker_already_has_stays_its_own(served):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        way = place.place()
        async with way.session() as talk:
            job = await talk.take()
        await _until(lambda: _no_session(place))

        async with way.session(worker=talk.welcome.worker) as talk:
            assert not (await talk.ask()).jobs
            assert (await talk.settle(done(job))).accepted == 1
        assert (await place.store.run(calls.get(job_id))).state == "succeeded"

    served(test)


def test_assignments_too_big_for_a_message_come_in_parts(served):
    async def test(place):
        text = '{"text": "%s"}' % ("x" * 90_000)
        ids = [await place.store.run(calls.enqueue(new_job(args=text))) for _ in range(10)]
        async with place.place().session() as talk:
            first = await talk.ask(room=10)
            parts = [first]
            while parts[-1].more:
                parts.append((await talk.hear("assignments")).assignments)

            assert [job.id for part in parts for job in part.jobs] == ids
            assert len(parts) > 1
            assert {part.id for part in parts} == {first.id}
            assert (await talk.settle(*(done(job) for part in parts for job in part.jobs))).accepted == 10

    served(test, message_bytes_max=400_000)


def test_a_unary_answer_gives_back_what_does_not_fit(served):
    async def test(place):
        text = '{"text": "%s"}' % ("x" * 90_000)
        for _ in range(6):
            await place.store.run(calls.enqueue(new_job(args=text)))
        way = place.place()
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=6, queues=["default"]))

        first = await way.ask(way.workers.Lease, ask)
        second = await way.ask(way.workers.Lease, ask)

        assert 0 < len(first.jobs) < 6
        assert not {job.id for job in first.jobs} & {job.id for job in second.jobs}
        assert {job.attempt for job in second.jobs} == {1}

    served(test, message_bytes_max=400_000)


def test_one_that_cannot_be_given_back_does_not_keep_the_others(served):
    async def test(place):
        jobs = [await place.store.run(calls.enqueue(new_job())) for _ in range(3)]
        async with place.place().session() as talk:
            given = list((await talk.ask(room=3, wait_ms=5_000)).jobs)
            carry = place.store.run

            async def run(call, hint=None):
                if call.name == "release" and call.args["job_id"] == given[0].id:
                    raise DeadlockDetected("not now")
                return await carry(call, hint)

            place.store.run = run
            try:
                await place.server.service.assigner.hand_back(given)
            finally:
                del place.store.run
        states = [(await place.store.run(calls.get(job))).state for job in jobs]
        assert sorted(states) == ["queued", "queued", "running"]

    served(test)
