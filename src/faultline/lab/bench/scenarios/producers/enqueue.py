"""Enqueueing: one call at a time, by how many jobs each brings; no worker drains the queue."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from faultline.lab.bench.case import Case, CaseResult, CaseRunner, Row
from faultline.lab.bench.load import PAD, noop
from faultline.lab.bench.measure.questions import ask
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.run_bench import proof
from faultline.lab.bench.scenario import BenchScenario
from faultline.store.driver.connect import connect


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueSize:
    """Jobs in one call, and for how many seconds each is tried."""

    batches: tuple[int, ...] = (1, 10, 100, 1_000)
    seconds: float = 5.0


def cases(stand: CaseRunner, size: EnqueueSize) -> Iterator[CaseResult]:
    for batch in size.batches:
        with stand.case(f"{batch:,} a call") as case:
            row = _enqueue(case, _bulk(case, batch) if batch > 1 else _single(case), batch, size.seconds)
            yield CaseResult(row | proof(case, row["jobs"]))


def _single(case: Case) -> Callable[[int], object]:
    """As a user does it, arguments checked and all."""

    @case.app.task(name="noop")
    async def one(n: int, pad: str) -> None: ...

    return lambda number: one.enqueue(number, PAD)


def _bulk(case: Case, batch: int) -> Callable[[int], object]:
    return lambda call: case.app.enqueue_many([noop(call * batch + number) for number in range(batch)])


def _enqueue(case: Case, call: Callable[[int], object], batch: int, within_seconds: float) -> Row:
    times: list[float] = []
    with connect(case.dsn) as conn:
        before = ask(conn, "counters")
        began = at = time.perf_counter()
        while at - began < within_seconds:
            call(len(times))
            called, at = at, time.perf_counter()
            times.append((at - called) * 1e3)
            case.told("enqueue", int((at - began) * 10), int(within_seconds * 10))
        after = ask(conn, "counters")
    jobs, seconds = batch * len(times), at - began
    return {
        "case": case.label, "batch": batch, "jobs": jobs, "seconds": seconds,
        "enqueued_per_second": jobs / seconds, "calls_per_second": len(times) / seconds,
        **spread(times, "call_ms"), "wal_bytes_per_job": (after["wal_bytes"] - before["wal_bytes"]) / jobs,
    }  # fmt: skip


SCENARIO = BenchScenario(
    name="enqueue",
    summary="one producer, one awaited call at a time, with 1 to 1,000 jobs in each",
    full=EnqueueSize(),
    quick=EnqueueSize(batches=(1, 100), seconds=0.3),
    cases=cases,
    columns="batch enqueued_per_second calls_per_second call_ms_p50 call_ms_p99 wal_bytes_per_job",
    plots=(
        Curve(
            name="rate",
            title="Enqueue rate of one producer, by the jobs of a call",
            x="batch",
            y=("enqueued_per_second",),
            x_log=True,
            y_log=True,
        ),
    ),
)
