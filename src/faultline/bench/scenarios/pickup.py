"""Pickup: how soon an idle worker begins a job that was just committed, one job at a time."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from faultline.bench.case import Case, Found, Stand
from faultline.bench.load import stamp
from faultline.bench.run import at_work
from faultline.bench.scenario import Scenario
from faultline.bench.spread import spread
from faultline.store import calls

REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """So many jobs, and milliseconds from one to the next."""

    jobs: int = 500
    every_ms: int = 20


def cases(stand: Stand, size: Size) -> Iterator[Found]:
    with stand.case("one idle worker") as case:
        with at_work(case) as run:
            time.sleep(REST_SECONDS)
            began = time.perf_counter()
            sent = [_send(case, number, size) for number in range(size.jobs)]
            run.wait_for(size.jobs)
            seconds = time.perf_counter() - began
            begun = run.workers.boards.moments(size.jobs)
            run.wait_until_empty()
        after = [(at - committed) / 1e6 for at, (_, committed) in zip(begun, sent, strict=True)]
        with_call = [(at - called) / 1e6 for at, (called, _) in zip(begun, sent, strict=True)]
        yield run.found(size.jobs, seconds, spread(after, "pickup_ms") | spread(with_call, "call_ms"))


def _send(case: Case, number: int, size: Size) -> tuple[int, int]:
    """Enqueue one job as a producer does; answers when the call was made and when its commit was answered."""
    new = stamp(number)
    called = time.time_ns()
    case.store.run(calls.enqueue(new))
    committed = time.time_ns()
    case.store.run(calls.wake(new.queue))
    case.told("pick up", number + 1, size.jobs)
    time.sleep(max(0.0, size.every_ms / 1e3 - (time.time_ns() - called) / 1e9))
    return called, committed


SCENARIO = Scenario(
    name="pickup",
    summary="from a job's commit to its handler's first line, with one idle worker; and the worker's memory",
    full=Size(),
    quick=Size(jobs=20, every_ms=5),
    cases=cases,
    columns=(
        "jobs pickup_ms_p50 pickup_ms_p95 pickup_ms_p99 pickup_ms_max call_ms_p50 call_ms_p99 "
        "worker_mb pacemaker_mb"
    ),
)
