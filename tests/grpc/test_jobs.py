"""What clients ask for over gRPC: submit, get, wait, cancel."""

import asyncio
import json

import grpc
import pytest

from faultline.lab.conformance.scripted_worker import done, proof
from faultline.lab.conformance.status_details import problem_in
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.store import calls
from tests.support import new_job

Code = grpc.StatusCode
NewJob = client_pb2.NewJob


async def _refused(calling):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calling
    return caught.value.code(), problem_in(caught.value)


def test_a_job_is_submitted_with_all_it_may_say(served):
    async def test(place):
        way = place.place()
        run_at_us = 4_000_000_000_000_000
        job_id = await way.submit(
            task="charge", queue="billing", args=b'{"order": 7}', priority=-5, run_at_us=run_at_us,
            max_attempts=3, lease_ms=2_000, timeout_ms=60_000, retry='{"first": 1}', key="order-7",
            key_for_ms=1_000,
        )  # fmt: skip
        info = await way.info(job_id)
        assert (info.task, info.queue, info.priority, info.max_attempts) == ("charge", "billing", -5, 3)
        assert (json.loads(info.args), info.key, info.run_at_us) == ({"order": 7}, "order-7", run_at_us)
        assert (info.state, info.ended) == ("queued", False)
        assert not info.HasField("result")

    served(test)


def test_a_payload_is_passed_on_as_it_is_kept(served):
    """The server does not parse it: parsing holds up other calls and loses the last digits."""
    digits = b"12345678901234567890.12345678901234567890"

    async def test(place):
        way = place.place()
        info = await way.info(await way.submit(task="t", args=b'{"n": ' + digits + b"}"))
        assert info.args == b'{"n": ' + digits + b"}"

    served(test)


def test_two_submits_with_one_key_are_one_job(served):
    async def test(place):
        way = place.place()
        first = await way.submit(key="order-7", args=b'{"order": 7}')
        assert await way.submit(key="order-7", args=b'{"order": 7}') == first
        code, problem = await _refused(way.submit(key="order-7", args=b'{"order": 8}'))
        assert (code, problem.code) == (Code.ALREADY_EXISTS, "key_conflict")

    served(test)


def test_many_jobs_are_submitted_all_or_none(served):
    async def test(place):
        way = place.place()
        many = [NewJob(task="t", queue=queue, args=b'{"n": %d}' % n) for n, queue in enumerate("aabba")]
        answer = await way.ask(way.jobs.SubmitMany, client_pb2.SubmitManyRequest(jobs=many))
        assert [json.loads((await way.info(id)).args)["n"] for id in answer.ids] == [0, 1, 2, 3, 4]

        bad = client_pb2.SubmitManyRequest(jobs=[*many, NewJob(task="t", args=b"[1]")])
        code, problem = await _refused(way.ask(way.jobs.SubmitMany, bad))
        assert (code, problem.code) == (Code.INVALID_ARGUMENT, "bad_document")
        assert "jobs[5].args" in problem.message
        assert len(await place.store.run(calls.list_jobs())) == 5

    served(test)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"task": ""}, "bad_name"),
        ({"task": "t", "queue": "-x"}, "bad_name"),
        ({"task": "t", "args": b"nope"}, "bad_document"),
        ({"task": "t", "args": b'{"a": "\\u0000"}'}, "bad_document"),
        ({"task": "t", "args": b'{"a": "\xff"}'}, "bad_document"),
        ({"task": "t", "priority": 101}, "out_of_bounds"),
        ({"task": "t", "max_attempts": 0}, "out_of_bounds"),
        ({"task": "t", "delay_ms": 2**63}, "out_of_bounds"),
        ({"task": "t", "run_at_us": -(2**62)}, "out_of_bounds"),
        ({"task": "t", "run_at_us": 10**15, "delay_ms": 1}, "out_of_bounds"),
        ({"task": "t", "lease_ms": 1}, "out_of_bounds"),
        ({"task": "t", "key": "a\nb"}, "bad_name"),
        ({"task": "t", "retry": "{"}, "bad_document"),
    ],
)
def test_bad_input_is_refused_at_the_door(served, asked, code):
    async def test(place):
        way = place.place()
        request = client_pb2.SubmitRequest(job=NewJob(**asked))
        status, problem = await _refused(way.ask(way.jobs.Submit, request))
        assert (status, problem.code) == (Code.INVALID_ARGUMENT, code)
        assert not await place.store.run(calls.list_jobs())

    served(test)


def test_a_wait_ends_with_the_job(served):
    async def test(place):
        way = place.place()
        job_id = await way.submit()
        early = await way.ask(way.jobs.Wait, client_pb2.WaitRequest(id=job_id, wait_ms=50))
        assert (early.state, early.ended) == ("queued", False)
        waiting = asyncio.ensure_future(
            way.ask(way.jobs.Wait, client_pb2.WaitRequest(id=job_id, wait_ms=20_000), 30)
        )
        async with way.session() as talk:
            await talk.settle(done(await talk.take(), b'"sent"'))
        ended = await waiting
        assert (ended.state, ended.ended, json.loads(ended.result)) == ("succeeded", True, "sent")

    served(test)


def test_a_job_is_cancelled_once(served):
    async def test(place):
        way = place.place()
        job_id = await way.submit()
        for _ in range(2):
            await way.ask(way.jobs.Cancel, client_pb2.CancelRequest(id=job_id, reason="no longer needed"))
        assert (await way.info(job_id)).state == "cancelled"
        async with way.session() as talk:
            other = await way.submit()
            await talk.settle(done(await talk.take()))
        code, problem = await _refused(way.ask(way.jobs.Cancel, client_pb2.CancelRequest(id=other)))
        assert (code, problem.code) == (Code.FAILED_PRECONDITION, "wrong_state")

    served(test)


def test_one_query_serves_all_waiting_calls(served):
    async def test(place):
        jobs = [await place.store.run(calls.enqueue(new_job())) for _ in range(40)]
        carry, asked = place.store.run, []

        async def run(call, hint=None):
            asked.append(call.name)
            return await carry(call, hint)

        place.store.run = run
        way = place.place()
        waits = [
            asyncio.create_task(way.ask(way.jobs.Wait, client_pb2.WaitRequest(id=job, wait_ms=1_500)))
            for job in jobs
        ]
        answers = await asyncio.gather(*waits)
        del place.store.run
        assert {answer.state for answer in answers} == {"queued"}
        assert asked.count("ended") < 100  # each for itself, ten times a second, would be some 500

    served(test)


def test_i12_a_result_that_cannot_be_kept_harms_no_other(served):
    """Before, it went to the database unchecked: 900 KB of `1e-16383` made a backend of 2.1 GB."""

    async def test(place):
        way = place.place()
        for _ in range(2):
            await way.submit()
        async with way.session() as talk:
            good, bad = (await talk.ask(room=2, wait_ms=5_000)).jobs
            large = b"[" + b",".join([b"1e-16383"] * 100_000) + b"]"
            settled = await talk.settle(done(good, b"1"), done(bad, large))

            assert (settled.accepted, settled.rest[0].index) == (1, 1)
            assert settled.rest[0].why == worker_pb2.WHY_INVALID
            assert settled.rest[0].problem.code == "bad_document"
            assert "exponent beyond 400 either way. Send it as text" in settled.rest[0].problem.message
            assert await talk.beat(proof(bad)) == [worker_pb2.PULSE_HELD]
            assert (await talk.settle(done(bad))).accepted == 1

    served(test)


def test_a_key_rule_says_which_job_counts_and_the_answer_whether_it_is_new(served):
    async def test(place):
        way = place.place()
        asked = NewJob(task="sync", key="tenant-7", key_rule="while_queued", args=b'{"n": 1}')
        first = await way.ask(way.jobs.Submit, client_pb2.SubmitRequest(job=asked))
        asked.args = b'{"n": 2}'
        second = await way.ask(way.jobs.Submit, client_pb2.SubmitRequest(job=asked))
        assert (first.is_new, second.is_new, second.id) == (True, False, first.id)
        code, problem = await _refused(way.submit(key="k", key_rule="sometimes"))
        assert (code, problem.code) == (Code.INVALID_ARGUMENT, "out_of_bounds")

    served(test)


def test_a_job_may_expire(served):
    async def test(place):
        way = place.place()
        job_id = await way.submit(task="remind", expires_in_ms=1)
        await asyncio.sleep(0.01)
        await place.store.run(calls.expire())
        assert (await way.info(job_id)).state == "cancelled"
        code, problem = await _refused(
            way.submit(task="t", expires_in_ms=5, expires_at_us=4_000_000_000_000_000)
        )
        assert (code, problem.code) == (Code.INVALID_ARGUMENT, "out_of_bounds")

    served(test)
