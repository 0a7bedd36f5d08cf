"""The checks of a server's fence: beats, late results, unknown outcomes, in both forms of the protocol."""

import json
import time
from typing import Final
from uuid import uuid4

import grpc

from faultline.lab.conformance.scripted_worker import ServerUnderTest, done, proof, result
from faultline.lab.conformance.status_details import refusal_in
from faultline.lab.conformance.verdict import Skipped, checks_in, hold, refused_with, same
from faultline.rpc.v1 import client_pb2, worker_pb2

Code = grpc.StatusCode
SHORT_LEASE_MS: Final = 500
TAKEN_BACK_SECONDS: Final = 40.0


async def check_a_beat_renews_what_is_held(place: ServerUnderTest) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        same("the answer", await talk.beat(proof(job)), [worker_pb2.PULSE_HELD])
        same("an idle beat", await talk.beat(), [])
        await talk.settle(done(job))


async def check_a_beat_with_another_claim_or_token_is_lost(place: ServerUnderTest) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        stale = await talk.beat(proof(job, token=job.token - 1))
        forged = await talk.beat(proof(job, claim=uuid4().bytes))
        same("the answers", stale + forged, [worker_pb2.PULSE_LOST] * 2)
        same("the owner's own beat", await talk.beat(proof(job)), [worker_pb2.PULSE_HELD])
        await talk.settle(done(job))


async def check_a_result_with_another_claim_changes_nothing(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        settled = await talk.settle(result(job, claim=uuid4().bytes))
        same("accepted", settled.accepted, 0)
        same("why", settled.rest[0].why, worker_pb2.WHY_REFUSED)
        same("the state", (await place.info(job_id)).state, "running")
        same("the owner's own result", (await talk.settle(done(job))).accepted, 1)


async def check_a_second_result_of_one_lease_is_refused(place: ServerUnderTest) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        await talk.settle(done(job))
        again = await talk.settle(result(job, worker_pb2.Failed(error="after all")))
        same("why", again.rest[0].why, worker_pb2.WHY_REFUSED)
        same("the reason", again.rest[0].refusal.reason, worker_pb2.REASON_SETTLED)


async def check_a_mixed_batch_is_answered_item_by_item(place: ServerUnderTest) -> None:
    for _ in range(3):
        await place.submit()
    async with place.session() as talk:
        jobs = (await talk.ask(room=3, wait_ms=5_000)).jobs
        forged = result(jobs[1], claim=uuid4().bytes)
        settled = await talk.settle(done(jobs[0]), forged, result(jobs[2], worker_pb2.Failed(error="no")))
        same("accepted", settled.accepted, 2)
        same("who was refused", [item.index for item in settled.rest], [1])
        await talk.settle(done(jobs[1]))


async def check_a_lease_that_ran_out_can_neither_beat_nor_commit(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    async with place.session(lease_ms=SHORT_LEASE_MS, name="late") as late, place.session() as awake:
        old = await late.take()
        new = await _taken_over(awake)
        same("the job", new.id, job_id)
        hold(new.token > old.token, f"the token went from {old.token} to {new.token}")
        same("the late beat", await late.beat(proof(old)), [worker_pb2.PULSE_LOST])
        refusal = (await late.settle(done(old, b'"late"'))).rest[0].refusal
        same("the reason", refusal.reason, worker_pb2.REASON_TOKEN_MISMATCH)
        same("the current token", refusal.current_token, new.token)
        single = worker_pb2.SettleRequest(results=worker_pb2.Results(items=[done(old)]))
        error = await refused_with(place.ask(place.workers.Settle, single), Code.FAILED_PRECONDITION)
        same("the current token in its details", refusal_in(error).current_token, new.token)
        same("the new owner's beat", await awake.beat(proof(new)), [worker_pb2.PULSE_HELD])
        same("the new owner's result", (await awake.settle(done(new, b'"on time"'))).accepted, 1)
    same("the result", json.loads((await place.info(job_id)).result), "on time")


async def _taken_over(talk: object) -> worker_pb2.Job:
    """The next lease of a job whose worker is silent: a watchdog has to take the first one back."""
    until = time.monotonic() + TAKEN_BACK_SECONDS
    while time.monotonic() < until:
        if jobs := (await talk.ask(wait_ms=2_000)).jobs:  # type: ignore[attr-defined]
            return jobs[0]  # type: ignore[no-any-return]
    hold(False, f"no watchdog took the lease back in {TAKEN_BACK_SECONDS:.0f} s; one has to run")
    raise AssertionError


async def check_rows_answer_for_unknown_outcomes(place: ServerUnderTest) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        asked = worker_pb2.OutcomeRequest(
            leases=[proof(job), proof(job, token=job.token + 1, claim=uuid4().bytes)]
        )
        same("while it runs", list((await place.ask(place.workers.Outcome, asked)).ends),
             [worker_pb2.END_RUNNING, worker_pb2.END_GONE])  # fmt: skip
        await talk.settle(done(job))
        same(
            "when it has ended",
            (await place.ask(place.workers.Outcome, asked)).ends[0],
            worker_pb2.END_SUCCEEDED,
        )


async def check_a_claim_whose_answer_was_lost_is_given_again(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    claim = uuid4().bytes
    async with place.session() as talk:
        first = await talk.take(claim=claim)
    async with place.session(worker=talk.welcome.worker) as talk:
        same("the worker", talk.welcome.worker > 0, True)
        jobs = (await talk.ask(room=10, claim=claim, again=True)).jobs
        same("the jobs", [(job.id, job.token) for job in jobs], [(job_id, first.token)])
        same("its beat", await talk.beat(proof(jobs[0])), [worker_pb2.PULSE_HELD])
        same("its result", (await talk.settle(done(jobs[0]))).accepted, 1)


async def check_a_cancelled_job_is_told_and_cannot_commit(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        try:
            await place.ask(place.jobs.Cancel, client_pb2.CancelRequest(id=job_id, reason="conformance"))
        except grpc.aio.AioRpcError as error:
            if error.code() is not Code.PERMISSION_DENIED:
                raise
            await talk.settle(done(job))
            raise Skipped("the key has no scope `operate`") from None
        same("the beat", await talk.beat(proof(job)), [worker_pb2.PULSE_CANCEL])
        settled = await talk.settle(done(job))
        same("accepted", settled.accepted, 0)
        same("the reason", settled.rest[0].refusal.reason, worker_pb2.REASON_CANCELLED)


async def check_a_result_that_breaks_a_rule_harms_no_other(place: ServerUnderTest) -> None:
    await place.submit()
    await place.submit()
    async with place.session() as talk:
        good, bad = (await talk.ask(room=2, wait_ms=5_000)).jobs
        settled = await talk.settle(done(good, b"1"), done(bad, b"{not json"))
        same("accepted", settled.accepted, 1)
        same("the other", (settled.rest[0].index, settled.rest[0].why), (1, worker_pb2.WHY_INVALID))
        same("its lease", await talk.beat(proof(bad)), [worker_pb2.PULSE_HELD])
        await talk.settle(done(bad))


async def check_the_unary_forms_do_the_same(place: ServerUnderTest) -> None:
    job_id = await place.submit()
    worker = (await place.ask(place.workers.Start, place.hello())).worker
    ask = worker_pb2.Ask(id=1, room=1, queues=[place.queue], wait_ms=5_000)
    lease = worker_pb2.LeaseRequest(worker=worker, ask=ask, lease_ms=5_000)
    (job,) = (await place.ask(place.workers.Lease, lease)).jobs
    same("the job", job.id, job_id)
    beat = worker_pb2.HeartbeatRequest(
        worker=worker, beat=worker_pb2.Beat(id=2, leases=[proof(job)]), lease_ms=5_000
    )
    same("the beat", list((await place.ask(place.workers.Heartbeat, beat)).answers), [worker_pb2.PULSE_HELD])
    results = worker_pb2.Results(id=3, items=[done(job)])
    settle = worker_pb2.SettleRequest(worker=worker, results=results)
    same("accepted", (await place.ask(place.workers.Settle, settle)).accepted, 1)
    error = await refused_with(place.ask(place.workers.Settle, settle), Code.FAILED_PRECONDITION)
    same("the reason", refusal_in(error).reason, worker_pb2.REASON_SETTLED)
    await place.ask(place.workers.Stop, worker_pb2.StopRequest(worker=worker))


async def check_a_long_poll_ends_before_its_deadline(place: ServerUnderTest) -> None:
    ask = worker_pb2.LeaseRequest(
        ask=worker_pb2.Ask(room=1, queues=[place.queue], wait_ms=20_000), lease_ms=5_000
    )
    answer = await place.ask(place.workers.Lease, ask, seconds=3.0)
    same("the number of jobs", len(answer.jobs), 0)


CHECKS: Final = checks_in(globals())
