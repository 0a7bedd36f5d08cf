"""The checks of a server's sessions: which are admitted, and how one begins, asks and ends."""

import asyncio
import time
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from faultline.lab.conformance.scripted_worker import ServerUnderTest, done
from faultline.lab.conformance.status_details import problem_in
from faultline.lab.conformance.verdict import checks_in, hold, refused_with, same
from faultline.rpc.v1 import client_pb2, worker_pb2

Code = grpc.StatusCode
MIB: Final = 1_048_576


# coming in


async def check_the_health_service_says_serving(place: ServerUnderTest) -> None:
    stub = health_pb2_grpc.HealthStub(place.channel)
    answer = await place.ask(stub.Check, health_pb2.HealthCheckRequest())
    same("the status", answer.status, health_pb2.HealthCheckResponse.SERVING)


async def check_a_call_without_a_key_gets_no_work(place: ServerUnderTest) -> None:
    stranger = ServerUnderTest(place.channel, None, place.queue)
    ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=[place.queue]))
    await refused_with(stranger.ask(place.workers.Lease, ask), Code.UNAUTHENTICATED, Code.PERMISSION_DENIED)


async def check_a_wrong_key_is_not_known(place: ServerUnderTest) -> None:
    stranger = ServerUnderTest(place.channel, "flk_000000000000_" + "A" * 43, place.queue)
    await refused_with(stranger.ask(place.jobs.Get, client_pb2.GetRequest(id=1)), Code.UNAUTHENTICATED)


async def check_a_unary_call_needs_a_deadline(place: ServerUnderTest) -> None:
    calling = place.jobs.Get(client_pb2.GetRequest(id=1), metadata=place.metadata)
    error = await refused_with(calling, Code.INVALID_ARGUMENT)
    same("the code of the problem", problem_in(error).code, "no_deadline")


async def check_a_refusal_names_its_code_and_an_id(place: ServerUnderTest) -> None:
    asking = place.ask(place.jobs.Get, client_pb2.GetRequest(id=2**62))
    problem = problem_in(await refused_with(asking, Code.NOT_FOUND))
    same("the code of the problem", problem.code, "not_found")
    hold(bool(problem.id), "the problem has no id")


async def check_a_message_of_five_mebibytes_is_refused(place: ServerUnderTest) -> None:
    huge = client_pb2.NewJob(task="conformance.echo", queue=place.queue, args=b'"' + b"x" * (5 * MIB) + b'"')
    await refused_with(
        place.ask(place.jobs.Submit, client_pb2.SubmitRequest(job=huge)), Code.RESOURCE_EXHAUSTED
    )


# sessions


async def check_a_session_begins_with_hello(place: ServerUnderTest) -> None:
    talk = place.stream()
    await talk.say(ask=worker_pb2.Ask(id=1, room=1))
    same("the status", await talk.ended(), Code.INVALID_ARGUMENT)


async def check_an_unknown_protocol_is_refused(place: ServerUnderTest) -> None:
    talk = place.stream()
    await talk.say(hello=place.hello(protocol=99))
    same("the status", await talk.ended(), Code.FAILED_PRECONDITION)


async def check_hello_is_answered_with_the_limits(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        hold(talk.welcome.worker > 0, "the worker was given no id")
        same("the protocol", talk.welcome.protocol, 1)
        for name in ("message_bytes_max", "room_max", "wait_ms_max", "items_max", "unanswered_max"):
            hold(getattr(talk.welcome.limits, name) > 0, f"the limit {name} was not told")


async def check_a_ping_is_answered_with_its_id(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        if talk.welcome.pings:
            await talk.say(ping=worker_pb2.Ping(id=7))
            same("the id", (await talk.hear("pong")).pong.id, 7)


async def check_an_ask_on_an_empty_queue_is_answered_with_nothing(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        same("the number of jobs", len((await talk.ask()).jobs), 0)


async def check_an_ask_for_more_than_the_limit_ends_the_stream(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        await talk.say(ask=worker_pb2.Ask(id=1, room=talk.welcome.limits.room_max + 1))
        same("the status", await talk.ended(), Code.INVALID_ARGUMENT)


async def check_an_ask_leaves_the_tasks_it_excepts(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        if not talk.welcome.limits.except_tasks_max:
            return
        other, ours = await place.submit(task="conformance.other"), await place.submit()
        answer = await talk.ask(room=10, except_tasks=["conformance.other"])
        same("the jobs", [job.id for job in answer.jobs], [ours])
        rest = await talk.ask(room=10)
        same("the jobs left", [job.id for job in rest.jobs], [other])
        await talk.settle(*map(done, [*answer.jobs, *rest.jobs]))


async def check_an_ask_that_excepts_too_many_tasks_ends_the_stream(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        if most := talk.welcome.limits.except_tasks_max:
            tasks = [f"task{number}" for number in range(most + 1)]
            await talk.say(ask=worker_pb2.Ask(id=1, room=1, except_tasks=tasks))
            same("the status", await talk.ended(), Code.INVALID_ARGUMENT)


async def check_an_ask_that_waits_is_answered_when_work_comes(place: ServerUnderTest) -> None:
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


async def check_a_withdrawn_ask_is_answered(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        await talk.say(ask=worker_pb2.Ask(id=7, room=1, wait_ms=20_000))
        await talk.say(withdraw=worker_pb2.Withdraw(id=7))
        answer = (await talk.hear("assignments", 5.0)).assignments
        same("the answer", (answer.id, len(answer.jobs)), (7, 0))


async def check_goodbye_ends_the_stream_in_good_order(place: ServerUnderTest) -> None:
    async with place.session() as talk:
        await talk.say(ask=worker_pb2.Ask(id=1, room=1, wait_ms=20_000))
        await talk.say(goodbye=worker_pb2.Goodbye())
        await talk.hear("assignments", 5.0)
        same("the status", await talk.ended(5.0), Code.OK)


CHECKS: Final = checks_in(globals())
