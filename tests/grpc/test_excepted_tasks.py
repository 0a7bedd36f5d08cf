"""An Ask that leaves tasks to others: what it is given, what it may name, and who is woken in its place."""

import asyncio
import time

import grpc
import pytest

from faultline.bounds import TASK_CHARS_MAX
from faultline.lab.conformance.scripted_worker import done
from faultline.lab.conformance.status_details import problem_in
from faultline.rpc.v1 import worker_pb2
from faultline.store import calls
from tests.support import new_job

Code = grpc.StatusCode


def lease(**ask):
    return worker_pb2.LeaseRequest(ask=worker_pb2.Ask(**{"room": 10, "queues": ["default"], **ask}))


def test_both_forms_of_an_ask_leave_what_they_except(served):
    async def test(place):
        tasks = ("known", "unknown", "known")
        ids = [await place.store.run(calls.enqueue(new_job(task=task))) for task in tasks]
        way = place.place()
        answer = await way.ask(way.workers.Lease, lease(room=1, except_tasks=["known", "other", "other"]))
        assert [job.id for job in answer.jobs] == [ids[1]]
        async with way.session() as talk:
            assert not (await talk.ask(room=10, except_tasks=["known"])).jobs
            rest = (await talk.ask(room=10, except_tasks=["unknown"])).jobs
            assert sorted(job.id for job in rest) == [ids[0], ids[2]]
            assert (await talk.settle(*map(done, rest))).accepted == 2

    served(test)


@pytest.mark.parametrize(
    ("tasks", "code"),
    [
        ([f"task{number}" for number in range(51)], "out_of_bounds"),
        (["same"] * 51, "out_of_bounds"),
        (["x" * (TASK_CHARS_MAX + 1)], "bad_name"),
        (["known", ""], "bad_name"),
        (["nul\0"], "bad_name"),
        (["no; spaces"], "bad_name"),
    ],
)
def test_tasks_that_an_ask_cannot_except_are_refused_by_name_and_nothing_is_claimed(served, tasks, code):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        way = place.place()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await way.ask(way.workers.Lease, lease(except_tasks=tasks))
        assert (caught.value.code(), problem_in(caught.value).code) == (Code.INVALID_ARGUMENT, code)
        async with way.session() as talk:
            await talk.say(ask=worker_pb2.Ask(id=1, room=1, except_tasks=tasks))
            assert await talk.ended() is Code.INVALID_ARGUMENT
        assert (await place.store.run(calls.get(job_id))).state == "queued"

    served(test)


def test_a_job_that_one_ask_excepts_comes_to_the_next_that_waits(served):
    """A ring lets one look: it must not end with a worker that does not take the job."""

    async def test(place):
        way = place.place()
        async with way.session() as ours, way.session() as theirs:
            first = asyncio.create_task(ours.ask(wait_ms=25_000, except_tasks=["theirs"]))
            await asyncio.sleep(0.3)
            second = asyncio.create_task(theirs.ask(wait_ms=25_000, except_tasks=["ours"]))
            await asyncio.sleep(0.3)
            began = time.monotonic()
            job_id = await way.submit(task="theirs")
            (job,) = (await second).jobs
            assert job.id == job_id
            assert time.monotonic() - began < 5.0  # the floor under all wake-ups is each 10 s
            assert not first.done()
            await theirs.settle(done(job))
            first.cancel()

    served(test)


def test_a_job_of_another_app_comes_to_the_next_that_waits_and_knows_it(served):
    """One wake-up, three Asks: two workers of one app, and one of the other. It passes the second by."""

    async def test(place):
        way = place.place()
        async with (
            way.session(tasks=["ours"]) as ours, way.session(tasks=["ours"]) as more,
            way.session(tasks=["theirs", "more"]) as theirs,
        ):  # fmt: skip
            asks = []
            for talk in (ours, more, theirs):
                asks.append(asyncio.create_task(talk.ask(wait_ms=25_000)))
                await asyncio.sleep(0.3)
            began = time.monotonic()
            job_id = await way.submit(task="theirs")
            (job,) = (await asks[2]).jobs
            assert job.id == job_id
            assert time.monotonic() - began < 5.0  # the floor under all wake-ups is each 10 s
            assert not asks[0].done()
            assert not asks[1].done()
            await theirs.settle(done(job))
            for ask in asks[:2]:
                ask.cancel()

    served(test)


@pytest.mark.parametrize("unary", [False, True])
def test_a_worker_is_given_the_tasks_that_it_named(served, unary):
    async def test(place):
        way = place.place()
        for task in ("theirs", "ours"):
            await way.submit(task=task)
        if unary:
            worker = (await way.ask(way.workers.Start, way.hello(tasks=["ours", "ours"]))).worker
            asked = worker_pb2.LeaseRequest(worker=worker, ask=worker_pb2.Ask(room=5, queues=["default"]))
            answer = await way.ask(way.workers.Lease, asked)
            assert [job.task for job in answer.jobs] == ["ours"]
            await way.ask(way.workers.Start, way.hello(worker=worker))  # named none: any
            answer = await way.ask(way.workers.Lease, asked)
            assert [job.task for job in answer.jobs] == ["theirs"]
        else:
            async with way.session(tasks=["ours"]) as talk:
                assert [job.task for job in (await talk.ask(room=5)).jobs] == ["ours"]

    served(test)


@pytest.mark.parametrize("tasks", [["no; name"], [""], ["x" * (TASK_CHARS_MAX + 1)]])
def test_a_name_that_no_task_can_have_is_refused_in_hello(served, tasks):
    async def test(place):
        way = place.place()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await way.ask(way.workers.Start, way.hello(tasks=tasks))
        assert caught.value.code() is Code.INVALID_ARGUMENT

    served(test)


def test_a_worker_that_names_too_many_tasks_is_given_any(served):
    async def test(place):
        way = place.place()
        async with way.session(tasks=[f"task_{number}" for number in range(1001)]) as talk:
            await way.submit(task="theirs")
            assert [job.task for job in (await talk.ask(room=5)).jobs] == ["theirs"]

    served(test)


def test_whether_others_serve_a_queue_is_told_to_keys_that_may_work_on_it(served):
    async def test(place):
        way = place.place()

        async def others(way, worker=0, queue="default"):
            asked = worker_pb2.OthersServeRequest(worker=worker, queue=queue)
            return (await way.ask(way.workers.OthersServe, asked)).others

        assert not await others(way)
        one = await way.ask(way.workers.Start, way.hello())
        assert not await others(way, one.worker)
        assert await others(way)
        two = await way.ask(way.workers.Start, way.hello())
        assert await others(way, one.worker)
        await way.ask(way.workers.Stop, worker_pb2.StopRequest(worker=two.worker))
        assert not await others(way, one.worker)
        assert not await others(way, one.worker, "elsewhere")

        bound = place.place(await place.key_for("work", queues=("elsewhere",)))
        for queue, status in (("default", Code.PERMISSION_DENIED), ("no queue", Code.INVALID_ARGUMENT)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await others(bound, queue=queue)
            assert caught.value.code() is status

    served(test)
