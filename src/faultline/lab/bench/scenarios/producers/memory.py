"""Memory: a million jobs enqueued from one generator, then drained; what producer and worker weigh."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from faultline.job import NewJob
from faultline.lab.bench.case import Case, CaseResult, CaseRunner, Row
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import noop
from faultline.lab.bench.measure.sampler import Sampler, Series
from faultline.lab.bench.measure.weight import weigh
from faultline.lab.bench.plots.plot import OverTime
from faultline.lab.bench.run_bench import proof
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySize:
    """How many jobs, in one call and one transaction."""

    jobs: int = 1_000_000


def cases(stand: CaseRunner, size: MemorySize) -> Iterator[CaseResult]:
    with stand.case("drain") as case:
        row, series = _enqueue(case, size.jobs)
        yield CaseResult(row | proof(case, size.jobs), series)
        found = drain(case, size.jobs, {})
        assert found.series is not None
        yield CaseResult(found.row | _growth(found.series, "worker_mb"), found.series)


def _enqueue(case: Case, jobs: int) -> tuple[Row, Series]:
    """All of them in one call of the app's own, from a generator."""

    def made() -> Iterator[NewJob]:
        for number in range(jobs):
            if number % 1_000 == 0:
                case.told("enqueue", number, jobs)
            yield noop(number)

    with Sampler(
        "enqueue", [lambda: {"producer_mb": weigh([os.getpid()], []).worker_mb}], case.every
    ) as sampler:
        began = time.perf_counter()
        case.app.enqueue_many(made())
        seconds = time.perf_counter() - began
    row = {"case": "enqueue", "jobs": jobs, "seconds": seconds, "enqueued_per_second": jobs / seconds}
    return row | _growth(sampler.series, "producer_mb"), sampler.series


def _growth(series: Series, gauge: str) -> Row:
    """The most it was, and by how much the last tenth of the time lay over the second tenth."""
    end = series.seconds[-1] if series.seconds else 0.0
    early, late = series.between(gauge, end * 0.1, end * 0.2), series.between(gauge, end * 0.9, end * 1.1)
    known = series.between(gauge, 0.0, end * 1.1)
    return {
        "peak_mb": max(known, default=None),
        "grew_mb": fmean(late) - fmean(early) if early and late else None,
    }


SCENARIO = BenchScenario(
    name="memory",
    summary="1,000,000 jobs enqueued in one call, then drained: memory of the producer and of the worker",
    full=MemorySize(),
    quick=MemorySize(jobs=2_000),
    cases=cases,
    columns="case jobs seconds enqueued_per_second jobs_per_second peak_mb grew_mb lost",
    plots=(
        OverTime(name="producer", title="Memory of a producer that enqueues a million jobs", y="producer_mb"),
        OverTime(name="worker", title="Memory of a worker that drains a million jobs", y="worker_mb"),
        OverTime(name="rate", title="Drain rate over a million jobs", y="jobs_per_second"),
        OverTime(name="ledger", title="Size of the ledger over a million jobs", y="ledger_mb"),
    ),
)
