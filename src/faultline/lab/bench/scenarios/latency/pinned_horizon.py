"""Pinned horizon: an idle transaction holds an xid, so that no dead row can be cleared away."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

from faultline.lab.bench.bench_database import track_claims
from faultline.lab.bench.case import Case, CaseResult, CaseRunner, Row
from faultline.lab.bench.load import Offered, offer
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.plots.plot import OverTime
from faultline.lab.bench.run_bench import BenchRun, at_work
from faultline.lab.bench.scenario import BenchScenario
from faultline.store.driver.connect import connect

GAUGES = ("jobs_per_second", "claim_ms", "dead_rows", "active_mb")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedHorizonSize:
    """Jobs a second; seconds before the horizon is pinned, while it is, and after."""

    rates: tuple[int, ...] = (800, 5_000)
    clean_seconds: int = 15
    pinned_seconds: int = 75
    after_seconds: int = 20
    workers: int = 1


def cases(stand: CaseRunner, size: PinnedHorizonSize) -> Iterator[CaseResult]:
    for rate in size.rates:
        with stand.case(f"{rate:,}/s") as case:
            yield from _case(case, size, rate)


def _case(case: Case, size: PinnedHorizonSize, rate: int) -> Iterator[CaseResult]:
    timed = track_claims(case.dsn)
    with at_work(case, size.workers) as run:
        sent = Offered()
        phases = [
            _phase(run, sent, rate, size.clean_seconds, "clean"),
            _pinned(run, sent, rate, size.pinned_seconds),
            _phase(run, sent, rate, size.after_seconds, "after"),
        ]
        run.wait_for(sent.jobs)
        run.wait_until_empty()
        phases.append(("all", 0.0, run.sampler.seconds, 0, sent.jobs))
        waited = sent.waits_ms(run.workers.boards.moments(sent.jobs))
    rows = [_figures(run, waited, phase, rate) for phase in phases]
    yield from (CaseResult(row) for row in rows[:-1])
    whole = run.found(sent.jobs, rows[-1]["seconds"], rows[-1])
    yield CaseResult(
        whole.row, whole.series, "" if timed else "claims were not timed: that takes a superuser"
    )


Phase = tuple[str, float, float, int, int]
"""Its name, when it began and ended, and the numbers of its first and its last job."""


def _phase(run: BenchRun, sent: Offered, rate: int, seconds: int, name: str) -> Phase:
    first, began = sent.jobs, run.sampler.mark(name)
    offer(run.case, rate, seconds, sent=sent)
    return name, began, run.sampler.seconds, first, sent.jobs


def _pinned(run: BenchRun, sent: Offered, rate: int, seconds: int) -> Phase:
    with _horizon(run.case):
        return _phase(run, sent, rate, seconds, "pinned")


@contextmanager
def _horizon(case: Case) -> Iterator[None]:
    """An idle transaction that has an xid: nothing that dies from now on may be cleared away."""
    with connect(case.dsn) as conn, conn.transaction():
        conn.execute("select pg_current_xact_id()")
        yield


def _figures(run: BenchRun, waited: list[float], phase: Phase, rate: int) -> Row:
    name, start, end, first, last = phase
    series = run.sampler.series
    means = {gauge: _mean(series.between(gauge, start, end)) for gauge in GAUGES}
    return {
        "case": f"{run.case.label}, {name}", "rate": rate, "phase": name, "jobs": last - first,
        "seconds": end - start, **means, **spread(waited[first:last], "pickup_ms"),
    }  # fmt: skip


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


SCENARIO = BenchScenario(
    name="pinned",
    summary="an idle transaction pins the horizon while 800 and 5,000 jobs come each second",
    full=PinnedHorizonSize(),
    quick=PinnedHorizonSize(rates=(300,), clean_seconds=1, pinned_seconds=1, after_seconds=1),
    cases=cases,
    columns="rate phase jobs jobs_per_second claim_ms pickup_ms_p50 pickup_ms_p99 dead_rows active_mb",
    plots=(
        OverTime(name="claim", title="Time of a claim while the horizon is pinned", y="claim_ms"),
        OverTime(name="rate", title="Jobs done while the horizon is pinned", y="jobs_per_second"),
        OverTime(name="dead", title="Dead rows while the horizon is pinned", y="dead_rows"),
        OverTime(name="size", title="Size of the table of due and running jobs", y="active_mb"),
    ),
)
