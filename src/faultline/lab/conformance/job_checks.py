"""The checks of a server as it gives jobs out, and records how their attempts ended."""

import json
import time
from typing import Final

from faultline.lab.conformance.scripted_worker import ServerUnderTest, done, result
from faultline.lab.conformance.verdict import checks_in, hold, same
from faultline.rpc.v1 import client_pb2, worker_pb2


async def check_a_job_comes_with_all_it_needs(place: ServerUnderTest) -> None:
    args = {"order": 17, "text": "grün \U0001f98e"}
    job_id = await place.submit(args=json.dumps(args).encode(), key=f"{place.queue}-all", max_attempts=7)
    async with place.session() as talk:
        job = await talk.take()
        same("the id", job.id, job_id)
        same("the args", json.loads(job.args), args)
        same("the task and queue", (job.task, job.queue), ("conformance.echo", place.queue))
        same("attempt of max_attempts", (job.attempt, job.max_attempts), (1, 7))
        same("the key", job.key, f"{place.queue}-all")
        same("the bytes of the claim", len(job.claim), 16)
        hold(job.token > 0, f"the token is {job.token}")
        hold(0 < job.lease_ms <= 5_000, f"a lease of 5000 ms was asked for, and it is told as {job.lease_ms}")
        hold(job.deadline_ms >= job.lease_ms, "the deadline lies before the lease's end")
        await talk.settle(done(job))


async def check_a_job_tells_its_priority_and_how_long_it_was_due(place: ServerUnderTest) -> None:
    began = time.monotonic()
    for priority in (5, -5):
        await place.submit(priority=priority)
    async with place.session() as talk:
        jobs = [await talk.take() for _ in range(2)]
        lived_us = (time.monotonic() - began) * 1e6
        for job in jobs:
            hold(job.HasField("pickup_us"), "it is not told how long the job was due")
            hold(0 <= job.pickup_us <= lived_us, f"due for {job.pickup_us} us after {lived_us:.0f} us")
        same("the priorities, the urgent first", [job.priority for job in jobs], [-5, 5])
        await talk.settle(*(done(job) for job in jobs))


async def check_a_jobs_trace_is_kept_with_it(place: ServerUnderTest) -> None:
    producer, first, second = (f"00-{digit * 32}-{digit * 16}-01" for digit in "123")
    await place.submit(trace=producer)
    async with place.session() as talk:
        job = await talk.take(trace=first)
        same("the trace of the first attempt", job.trace.split("\n"), [producer, "", first])
        await talk.settle(result(job, worker_pb2.Failed(error="once more", delay_ms=0)))
        job = await talk.take(wait_ms=15_000, trace=second)
        same("the trace of the second", job.trace.split("\n"), [producer, first, second])
        await talk.settle(done(job))
        await place.submit()
        job = await talk.take(trace="no trace context")
        same("what is no trace", job.trace, "")
        await talk.settle(done(job))


async def check_room_is_never_exceeded(place: ServerUnderTest) -> None:
    for _ in range(5):
        await place.submit()
    async with place.session() as talk:
        first = (await talk.ask(room=3, wait_ms=5_000)).jobs
        hold(len(first) <= 3, f"room was for 3, and {len(first)} came")
        rest = (await talk.ask(room=10, wait_ms=5_000)).jobs
        same("the number of jobs in all", len({job.id for job in (*first, *rest)}), 5)
        await talk.settle(*(done(job) for job in (*first, *rest)))


async def check_a_success_is_recorded_with_its_result(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        settled = await talk.settle(done(await talk.take(), b'{"sent": true}'))
    same("accepted", settled.accepted, 1)
    info = await place.ask(place.jobs.Wait, client_pb2.WaitRequest(id=job_id, wait_ms=5_000))
    same("the state", (info.state, info.ended), ("succeeded", True))
    same("the result", json.loads(info.result), {"sent": True})


async def check_a_failure_comes_again_and_is_counted(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        first = await talk.take()
        await talk.settle(result(first, worker_pb2.Failed(error="no such order", delay_ms=0)))
        second = await talk.take(wait_ms=15_000)
        same("the job", second.id, job_id)
        same("the attempt", second.attempt, 2)
        same("the bytes of the key_seed, of which idempotency keys are made", len(first.key_seed), 8)
        same("the key_seed of the second attempt", second.key_seed, first.key_seed)
        hold(second.token > first.token, f"the token went from {first.token} to {second.token}")
        await talk.settle(done(second))


async def check_what_is_snoozed_or_released_is_not_counted(place: ServerUnderTest) -> None:
    await place.submit()
    async with place.session() as talk:
        await talk.settle(result(await talk.take(), worker_pb2.Snoozed(delay_ms=0, reason="not yet")))
        await talk.settle(result(await talk.take(wait_ms=15_000), worker_pb2.Released(reason="not mine")))
        third = await talk.take(wait_ms=15_000)
        same("the attempt", third.attempt, 1)
        await talk.settle(done(third))


async def check_a_crash_is_counted_as_one(place: ServerUnderTest) -> None:
    await place.submit()
    async with place.session() as talk:
        crashed = worker_pb2.Crashed(error="the process died", signature="SIGSEGV", alone=True, delay_ms=0)
        await talk.settle(result(await talk.take(), crashed))
        again = await talk.take(wait_ms=15_000)
        same("crashes", again.crashes, 1)
        await talk.settle(done(again))


async def check_buried_is_dead_and_dropped_is_cancelled(place: ServerUnderTest) -> None:
    ids = [await place.submit(), await place.submit()]
    async with place.session() as talk:
        dead, dropped = sorted((await talk.ask(room=2, wait_ms=5_000)).jobs, key=lambda job: job.id)
        settled = await talk.settle(
            result(dead, worker_pb2.Buried(reason="the account is closed")),
            result(dropped, worker_pb2.Cancelled(reason="no longer wanted")),
        )
    same("accepted", settled.accepted, 2)
    same("the states", [(await place.info(id)).state for id in ids], ["dead", "cancelled"])


CHECKS: Final = checks_in(globals())
