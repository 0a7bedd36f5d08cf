"""Scheduled: jobs fall due at a fixed rate, with more and more others for later; how late each begins."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from faultline.lab.bench.bench_database import track_claims
from faultline.lab.bench.case import Case, CaseResult, CaseRunner
from faultline.lab.bench.load import Offered, fill, noop, stamp
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.plots.plot import OverTime
from faultline.lab.bench.run_bench import at_work
from faultline.lab.bench.scenario import BenchScenario

STEPS_PER_SECOND = 10
"""Jobs fall due in groups of one `run_at`, ten a second: like a schedule made by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledSize:
    """Jobs for tomorrow; jobs falling due each second, for how long; seconds to enqueue them in before."""

    waiting: tuple[int, ...] = (0, 1_000_000)
    rate: int = 5_000
    seconds: int = 20
    lead_seconds: int = 8
    workers: int = 1


def cases(stand: CaseRunner, size: ScheduledSize) -> Iterator[CaseResult]:
    for waiting in size.waiting:
        with stand.case(f"{waiting:,} scheduled") as case:
            if waiting:
                fill(case, waiting, partial(noop, run_at=datetime.now(UTC) + timedelta(days=1)), "schedule")
            track_claims(case.dsn)
            with at_work(case, size.workers) as run:
                due = _schedule(case, size)
                run.wait_for(due.jobs)
                seconds = run.wait_until_empty(but=waiting, poll_seconds=0.1) - due.meant_at[0] / 1e9
                late = spread(due.waits_ms(run.workers.boards.moments(due.jobs)), "late_ms")
            facts = {"scheduled": waiting, "rate": size.rate, "claim_ms": run.claim_ms}
            yield run.found(due.jobs, seconds, facts | late, behind=waiting)


def _schedule(case: Case, size: ScheduledSize) -> Offered:
    """Enqueue all that will fall due, a group at a time."""
    due = Offered()
    first = datetime.now(UTC) + timedelta(seconds=size.lead_seconds)
    group = size.rate // STEPS_PER_SECOND
    for step in range(size.seconds * STEPS_PER_SECOND):
        moment = first + timedelta(seconds=step / STEPS_PER_SECOND)
        numbers = range(due.jobs, due.jobs + group)
        case.app.enqueue_many([stamp(number, run_at=moment) for number in numbers])
        due.meant_at.extend([int(moment.timestamp() * 1e9)] * group)
        case.told("schedule", due.jobs, size.rate * size.seconds)
    return due


SCENARIO = BenchScenario(
    name="scheduled",
    summary="5,000 jobs fall due each second while 0 and 1,000,000 wait for tomorrow: how late they begin",
    full=ScheduledSize(),
    quick=ScheduledSize(waiting=(2_000,), rate=200, seconds=1, lead_seconds=1),
    cases=cases,
    columns=(
        "scheduled rate jobs_per_second late_ms_p50 late_ms_p99 late_ms_max claim_ms server_cpu_us_per_job"
    ),
    plots=(OverTime(name="rate", title="Jobs begun as they fall due", y="jobs_per_second"),),
)
