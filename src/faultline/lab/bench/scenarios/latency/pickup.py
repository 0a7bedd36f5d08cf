"""Pickup: how soon an idle worker begins a job that was just committed, one job at a time."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from faultline.lab.bench.case import Case, CaseResult, CaseRunner
from faultline.lab.bench.load import stamp
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.run_bench import at_work
from faultline.lab.bench.scenario import BenchScenario
from faultline.store import calls

REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PickupSize:
    """So many jobs, and milliseconds from one to the next."""

    jobs: int = 500
    every_ms: int = 20


def cases(stand: CaseRunner, size: PickupSize) -> Iterator[CaseResult]:
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


def _send(case: Case, number: int, size: PickupSize) -> tuple[int, int]:
    """Enqueue one job as a producer does; answers when the call was made and when its commit was answered."""
    new = stamp(number)
    called = time.time_ns()
    case.store.run(calls.enqueue(new))
    committed = time.time_ns()
    case.store.run(calls.wake(new.queue))
    case.told("pick up", number + 1, size.jobs)
    time.sleep(max(0.0, size.every_ms / 1e3 - (time.time_ns() - called) / 1e9))
    return called, committed


SCENARIO = BenchScenario(
    name="pickup",
    summary="from a job's commit to its handler's first line, with one idle worker; and the worker's memory",
    full=PickupSize(),
    quick=PickupSize(jobs=20, every_ms=5),
    cases=cases,
    columns=(
        "jobs pickup_ms_p50 pickup_ms_p95 pickup_ms_p99 pickup_ms_max call_ms_p50 call_ms_p99 "
        "worker_mb pacemaker_mb"
    ),
)
