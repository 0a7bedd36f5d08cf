"""The lessons for a foreign worker: what it must do with jobs, leases, answers and notices.

It is to know three tasks: `conformance.echo` returns its args, `conformance.fail` fails, and
`conformance.sleep` sleeps for `seconds`, then returns "slept"; on a stop it ends.
"""

import asyncio
import json
import time
from itertools import pairwise
from typing import Final

from faultline.lab.conformance.scripted_server import (
    LEASE_MS,
    PATIENCE,
    GivenJob,
    ScriptedServer,
    refused,
    until,
)
from faultline.lab.conformance.verdict import ConformanceCheck, hold, same, sentence
from faultline.rpc.v1 import worker_pb2

QUIET_SECONDS: Final = 2.0
"""How long to listen for what must not come."""


async def check_it_opens_a_session_and_says_hello(exam: ScriptedServer) -> None:
    await until(lambda: exam.stream is not None, PATIENCE, f"no session was opened in {PATIENCE:g} s")


async def check_it_returns_what_its_handler_returns(exam: ScriptedServer) -> None:
    args = {"order": 17, "text": "grün \U0001f98e"}
    result = await (await exam.give("conformance.echo", json.dumps(args).encode())).result()
    same("the outcome", result.WhichOneof("outcome"), "done")
    same("the result", json.loads(result.done.result), args)


async def check_it_reports_a_failure_with_its_error(exam: ScriptedServer) -> None:
    result = await (await exam.give("conformance.fail")).result()
    same("the outcome", result.WhichOneof("outcome"), "failed")
    hold(bool(result.failed.error), "the error is empty")


async def check_it_releases_a_task_it_does_not_know(exam: ScriptedServer) -> None:
    result = await (await exam.give("conformance.nobody_knows_this")).result()
    same("the outcome", result.WhichOneof("outcome"), "released")


async def check_it_beats_before_each_lease_runs_out(exam: ScriptedServer) -> None:
    given = await exam.give("conformance.sleep", b'{"seconds": 5}')
    result = await given.result()
    same("the outcome", result.WhichOneof("outcome"), "done")
    moments = [given.given_at, *given.beats, time.monotonic()]
    longest = max(later - sooner for sooner, later in pairwise(moments))
    hold(longest < LEASE_MS / 1000, f"{longest:.2f} s without a beat, and the lease was {LEASE_MS} ms")


async def check_it_stops_and_stays_silent_when_a_lease_is_lost(exam: ScriptedServer) -> None:
    await _told_to_stop(exam, worker_pb2.PULSE_LOST)


async def check_it_stops_and_stays_silent_when_a_job_is_cancelled(exam: ScriptedServer) -> None:
    await _told_to_stop(exam, worker_pb2.PULSE_CANCEL)


async def _told_to_stop(exam: ScriptedServer, pulse: int) -> None:
    given = await exam.give("conformance.sleep", b'{"seconds": 3}')
    given.pulse, given.judge = pulse, refused
    await given.beaten()
    await asyncio.sleep(3 + QUIET_SECONDS)
    hold(given.results.empty(), "it sent a result of a lease that it knew to be lost")
    echo = await (await exam.give("conformance.echo")).result()
    same("its next job", echo.WhichOneof("outcome"), "done")


async def check_it_does_not_repeat_a_refused_result(exam: ScriptedServer) -> None:
    given = await exam.give("conformance.echo")
    given.judge = refused
    await given.result()
    await asyncio.sleep(QUIET_SECONDS)
    hold(given.results.empty(), "it sent a result again that a fence had refused")


async def check_it_sends_a_busy_result_again(exam: ScriptedServer) -> None:
    given = await exam.give("conformance.echo")
    answers = [worker_pb2.Unsettled(why=worker_pb2.WHY_BUSY)]
    given.judge = lambda result: answers.pop() if answers else None
    await given.result()
    await given.result(5.0)


async def check_it_asks_the_rows_when_an_outcome_is_unknown(exam: ScriptedServer) -> None:
    given = await _unknown(exam, worker_pb2.END_RUNNING)
    await given.result(5.0)


async def check_it_does_not_repeat_what_the_rows_say_was_recorded(exam: ScriptedServer) -> None:
    given = await _unknown(exam, worker_pb2.END_SUCCEEDED)
    await asyncio.sleep(QUIET_SECONDS)
    hold(given.results.empty(), "it sent a result again that was recorded")


async def _unknown(exam: ScriptedServer, end: int) -> GivenJob:
    given = await exam.give("conformance.echo")
    exam.ends[given.job.id] = end
    answers = [worker_pb2.Unsettled(why=worker_pb2.WHY_UNKNOWN)]
    given.judge = lambda result: answers.pop() if answers else None
    await given.result()
    asked = f"it did not ask Outcome in {PATIENCE:g} s"
    await until(lambda: given.job.id in exam.outcomes_asked, PATIENCE, asked)
    return given


async def check_it_comes_back_when_its_stream_is_cut(exam: ScriptedServer) -> None:
    stream = exam.stream
    hold(stream is not None, "no session is open")
    assert stream is not None
    stream.cut()
    await until(lambda: exam.stream not in (None, stream), PATIENCE, f"no new session came in {PATIENCE:g} s")
    echo = await (await exam.give("conformance.echo")).result()
    same("its next job", echo.WhichOneof("outcome"), "done")


async def check_a_result_of_before_the_cut_is_sent_after_it(exam: ScriptedServer) -> None:
    given = await exam.give("conformance.sleep", b'{"seconds": 3}')
    stream = exam.stream
    assert stream is not None
    stream.cut()
    result = await given.result()
    same("the outcome", result.WhichOneof("outcome"), "done")
    hold(exam.stream not in (None, stream), "it sent the result, and no new session is open")


async def check_it_leaves_a_stream_that_is_drained(exam: ScriptedServer) -> None:
    stream = exam.stream
    hold(stream is not None, "no session is open")
    assert stream is not None
    await stream.drain()
    await until(lambda: exam.stream not in (None, stream), PATIENCE, f"no new session came in {PATIENCE:g} s")
    drained = time.monotonic()
    await asyncio.sleep(QUIET_SECONDS)
    late = [moment for moment in stream.asked_at if moment > drained + 0.5]
    hold(not late, "it went on asking for jobs on a stream that was drained")


async def check_it_broke_no_other_rule(exam: ScriptedServer) -> None:
    hold(not exam.faults, "; ".join(dict.fromkeys(exam.faults)))


CHECKS: Final = tuple(
    ConformanceCheck(sentence(function), function)
    for name, function in list(globals().items())
    if name.startswith("check_")
)
