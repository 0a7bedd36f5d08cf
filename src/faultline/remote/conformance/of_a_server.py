"""The checks of a server: sessions, leases, fences, refusals. Each needs no more than a URL and a key."""

import asyncio
import json
import time
from typing import Final
from uuid import uuid4

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from faultline.remote.conformance.talk import Place, done, proof, result
from faultline.remote.conformance.verdict import Check, Skipped, hold, refused_with, same, sentence
from faultline.rpc.v1 import client_pb2, problem_pb2, worker_pb2

Code = grpc.StatusCode
SHORT_LEASE_MS: Final = 500
TAKEN_BACK_SECONDS: Final = 40.0
MIB: Final = 1_048_576


# coming in


async def check_the_health_service_says_serving(place: Place) -> None:
    stub = health_pb2_grpc.HealthStub(place.channel)
    answer = await place.ask(stub.Check, health_pb2.HealthCheckRequest())
    same("the status", answer.status, health_pb2.HealthCheckResponse.SERVING)


async def check_a_call_without_a_key_gets_no_work(place: Place) -> None:
    stranger = Place(place.channel, None, place.queue)
    ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=[place.queue]))
    await refused_with(stranger.ask(place.workers.Lease, ask), Code.UNAUTHENTICATED, Code.PERMISSION_DENIED)


async def check_a_wrong_key_is_not_known(place: Place) -> None:
    stranger = Place(place.channel, "flk_000000000000_" + "A" * 43, place.queue)
    await refused_with(stranger.ask(place.jobs.Get, client_pb2.GetRequest(id=1)), Code.UNAUTHENTICATED)


async def check_a_unary_call_needs_a_deadline(place: Place) -> None:
    calling = place.jobs.Get(client_pb2.GetRequest(id=1), metadata=place.metadata)
    error = await refused_with(calling, Code.INVALID_ARGUMENT)
    same("the code of the problem", problem_in(error).code, "no_deadline")


async def check_a_refusal_names_its_code_and_an_id(place: Place) -> None:
    asking = place.ask(place.jobs.Get, client_pb2.GetRequest(id=2**62))
    problem = problem_in(await refused_with(asking, Code.NOT_FOUND))
    same("the code of the problem", problem.code, "not_found")
    hold(bool(problem.id), "the problem has no id")


async def check_a_message_of_five_mebibytes_is_refused(place: Place) -> None:
    huge = client_pb2.NewJob(task="conformance.echo", queue=place.queue, args=b'"' + b"x" * (5 * MIB) + b'"')
    await refused_with(
        place.ask(place.jobs.Submit, client_pb2.SubmitRequest(job=huge)), Code.RESOURCE_EXHAUSTED
    )


# sessions


async def check_a_session_begins_with_hello(place: Place) -> None:
    talk = place.stream()
    await talk.say(ask=worker_pb2.Ask(id=1, room=1))
    same("the status", await talk.ended(), Code.INVALID_ARGUMENT)


async def check_an_unknown_protocol_is_refused(place: Place) -> None:
    talk = place.stream()
    await talk.say(hello=place.hello(protocol=99))
    same("the status", await talk.ended(), Code.FAILED_PRECONDITION)


async def check_hello_is_answered_with_the_limits(place: Place) -> None:
    async with place.session() as talk:
        hold(talk.welcome.worker > 0, "the worker was given no id")
        same("the protocol", talk.welcome.protocol, 1)
        for name in ("message_bytes_max", "room_max", "wait_ms_max", "items_max", "unanswered_max"):
            hold(getattr(talk.welcome.limits, name) > 0, f"the limit {name} was not told")


async def check_an_ask_on_an_empty_queue_is_answered_with_nothing(place: Place) -> None:
    async with place.session() as talk:
        same("the number of jobs", len((await talk.ask()).jobs), 0)


async def check_an_ask_for_more_than_the_limit_ends_the_stream(place: Place) -> None:
    async with place.session() as talk:
        await talk.say(ask=worker_pb2.Ask(id=1, room=talk.welcome.limits.room_max + 1))
        same("the status", await talk.ended(), Code.INVALID_ARGUMENT)


async def check_an_ask_that_waits_is_answered_when_work_comes(place: Place) -> None:
    async with place.session() as talk:
        began = time.monotonic()
        asking = asyncio.create_task(talk.ask(wait_ms=20_000))
        await asyncio.sleep(0.5)
        job_id = await place.submit()
        answer = await asking
        took_ms = (time.monotonic() - began) * 1000
        same("the jobs", [job.id for job in answer.jobs], [job_id])
        hold(took_ms < 15_000, f"it took {took_ms:.0f} ms")
        hold(
            answer.waited_ms <= took_ms,
            f"waited_ms is {answer.waited_ms}, and only {took_ms:.0f} ms had passed",
        )
        hold(answer.waited_ms >= 300, f"waited_ms is {answer.waited_ms} after half a second of waiting")
        await talk.settle(done(answer.jobs[0]))


async def check_a_withdrawn_ask_is_answered(place: Place) -> None:
    async with place.session() as talk:
        await talk.say(ask=worker_pb2.Ask(id=7, room=1, wait_ms=20_000))
        await talk.say(withdraw=worker_pb2.Withdraw(id=7))
        answer = (await talk.hear("assignments", 5.0)).assignments
        same("the answer", (answer.id, len(answer.jobs)), (7, 0))


async def check_goodbye_ends_the_stream_in_good_order(place: Place) -> None:
    async with place.session() as talk:
        await talk.say(ask=worker_pb2.Ask(id=1, room=1, wait_ms=20_000))
        await talk.say(goodbye=worker_pb2.Goodbye())
        await talk.hear("assignments", 5.0)
        same("the status", await talk.ended(5.0), Code.OK)


# jobs and their leases


async def check_a_job_comes_with_all_it_needs(place: Place) -> None:
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


async def check_room_is_never_exceeded(place: Place) -> None:
    for _ in range(5):
        await place.submit()
    async with place.session() as talk:
        first = (await talk.ask(room=3, wait_ms=5_000)).jobs
        hold(len(first) <= 3, f"room was for 3, and {len(first)} came")
        rest = (await talk.ask(room=10, wait_ms=5_000)).jobs
        same("the number of jobs in all", len({job.id for job in (*first, *rest)}), 5)
        await talk.settle(*(done(job) for job in (*first, *rest)))


async def check_a_success_is_recorded_with_its_result(place: Place) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        settled = await talk.settle(done(await talk.take(), b'{"sent": true}'))
    same("accepted", settled.accepted, 1)
    info = await place.ask(place.jobs.Wait, client_pb2.WaitRequest(id=job_id, wait_ms=5_000))
    same("the state", (info.state, info.ended), ("succeeded", True))
    same("the result", json.loads(info.result), {"sent": True})


async def check_a_failure_comes_again_and_is_counted(place: Place) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        first = await talk.take()
        await talk.settle(result(first, worker_pb2.Failed(error="no such order", delay_ms=0)))
        second = await talk.take(wait_ms=15_000)
        same("the job", second.id, job_id)
        same("the attempt", second.attempt, 2)
        hold(second.token > first.token, f"the token went from {first.token} to {second.token}")
        await talk.settle(done(second))


async def check_what_is_snoozed_or_released_is_not_counted(place: Place) -> None:
    await place.submit()
    async with place.session() as talk:
        await talk.settle(result(await talk.take(), worker_pb2.Snoozed(delay_ms=0, reason="not yet")))
        await talk.settle(result(await talk.take(wait_ms=15_000), worker_pb2.Released(reason="not mine")))
        third = await talk.take(wait_ms=15_000)
        same("the attempt", third.attempt, 1)
        await talk.settle(done(third))


async def check_a_crash_is_counted_as_one(place: Place) -> None:
    await place.submit()
    async with place.session() as talk:
        crashed = worker_pb2.Crashed(error="the process died", signature="SIGSEGV", alone=True, delay_ms=0)
        await talk.settle(result(await talk.take(), crashed))
        again = await talk.take(wait_ms=15_000)
        same("crashes", again.crashes, 1)
        await talk.settle(done(again))


async def check_buried_is_dead_and_dropped_is_cancelled(place: Place) -> None:
    ids = [await place.submit(), await place.submit()]
    async with place.session() as talk:
        dead, dropped = sorted((await talk.ask(room=2, wait_ms=5_000)).jobs, key=lambda job: job.id)
        settled = await talk.settle(
            result(dead, worker_pb2.Buried(reason="the account is closed")),
            result(dropped, worker_pb2.Dropped(reason="nobody wants it")),
        )
    same("accepted", settled.accepted, 2)
    same("the states", [(await place.info(id)).state for id in ids], ["dead", "cancelled"])


# the fence


async def check_a_beat_renews_what_is_held(place: Place) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        same("the answer", await talk.beat(proof(job)), [worker_pb2.PULSE_HELD])
        same("an idle beat", await talk.beat(), [])
        await talk.settle(done(job))


async def check_a_beat_with_another_claim_or_token_is_lost(place: Place) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        stale = await talk.beat(proof(job, token=job.token - 1))
        forged = await talk.beat(proof(job, claim=uuid4().bytes))
        same("the answers", stale + forged, [worker_pb2.PULSE_LOST] * 2)
        same("the owner's own beat", await talk.beat(proof(job)), [worker_pb2.PULSE_HELD])
        await talk.settle(done(job))


async def check_a_result_with_another_claim_changes_nothing(place: Place) -> None:
    job_id = await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        settled = await talk.settle(result(job, claim=uuid4().bytes))
        same("accepted", settled.accepted, 0)
        same("why", settled.rest[0].why, worker_pb2.WHY_REFUSED)
        same("the state", (await place.info(job_id)).state, "running")
        same("the owner's own result", (await talk.settle(done(job))).accepted, 1)


async def check_a_second_result_of_one_lease_is_refused(place: Place) -> None:
    await place.submit()
    async with place.session() as talk:
        job = await talk.take()
        await talk.settle(done(job))
        again = await talk.settle(result(job, worker_pb2.Failed(error="after all")))
        same("why", again.rest[0].why, worker_pb2.WHY_REFUSED)
        same("the reason", again.rest[0].refusal.reason, worker_pb2.REASON_SETTLED)


async def check_a_mixed_batch_is_answered_item_by_item(place: Place) -> None:
    for _ in range(3):
        await place.submit()
    async with place.session() as talk:
        jobs = (await talk.ask(room=3, wait_ms=5_000)).jobs
        forged = result(jobs[1], claim=uuid4().bytes)
        settled = await talk.settle(done(jobs[0]), forged, result(jobs[2], worker_pb2.Failed(error="no")))
        same("accepted", settled.accepted, 2)
        same("who was refused", [item.index for item in settled.rest], [1])
        await talk.settle(done(jobs[1]))


async def check_a_lease_that_ran_out_can_neither_beat_nor_commit(place: Place) -> None:
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
    """The next lease of a job whose worker is silent: it needs a watchdog to take the first one back."""
    until = time.monotonic() + TAKEN_BACK_SECONDS
    while time.monotonic() < until:
        if jobs := (await talk.ask(wait_ms=2_000)).jobs:  # type: ignore[attr-defined]
            return jobs[0]  # type: ignore[no-any-return]
    hold(False, f"nobody took the lease back in {TAKEN_BACK_SECONDS:.0f} s; a watchdog has to run")
    raise AssertionError


async def check_rows_answer_for_unknown_outcomes(place: Place) -> None:
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


async def check_a_claim_whose_answer_was_lost_is_given_again(place: Place) -> None:
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


async def check_a_cancelled_job_is_told_and_cannot_commit(place: Place) -> None:
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


async def check_a_result_that_breaks_a_rule_harms_nobody_else(place: Place) -> None:
    await place.submit()
    await place.submit()
    async with place.session() as talk:
        good, bad = (await talk.ask(room=2, wait_ms=5_000)).jobs
        settled = await talk.settle(done(good, b"1"), done(bad, b"{not json"))
        same("accepted", settled.accepted, 1)
        same("the other", (settled.rest[0].index, settled.rest[0].why), (1, worker_pb2.WHY_INVALID))
        same("its lease", await talk.beat(proof(bad)), [worker_pb2.PULSE_HELD])
        await talk.settle(done(bad))


async def check_the_unary_forms_do_the_same(place: Place) -> None:
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


async def check_a_long_poll_ends_before_its_deadline(place: Place) -> None:
    ask = worker_pb2.LeaseRequest(
        ask=worker_pb2.Ask(room=1, queues=[place.queue], wait_ms=20_000), lease_ms=5_000
    )
    answer = await place.ask(place.workers.Lease, ask, seconds=3.0)
    same("the number of jobs", len(answer.jobs), 0)


def problem_in(error: grpc.aio.AioRpcError) -> problem_pb2.Problem:
    """The Problem among the details of a status."""
    return _detail(error, problem_pb2.Problem())  # type: ignore[return-value]


def refusal_in(error: grpc.aio.AioRpcError) -> worker_pb2.Refusal:
    """The Refusal among the details of a status."""
    return _detail(error, worker_pb2.Refusal())  # type: ignore[return-value]


def _detail(error: grpc.aio.AioRpcError, wanted: object) -> object:
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-status-details-bin":
            for packed in problem_pb2.Status.FromString(value).details:  # type: ignore[arg-type]
                if packed.Unpack(wanted):  # type: ignore[arg-type]
                    return wanted
    hold(False, f"the status has no {type(wanted).__name__} among its details")
    raise AssertionError


CHECKS: Final = tuple(
    Check(sentence(function), function)
    for name, function in list(globals().items())
    if name.startswith("check_")
)
