"""Backlog: the same drain with ever more jobs waiting behind it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from faultline.lab.bench.bench_database import checkpoint
from faultline.lab.bench.case import Case, CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain_part
from faultline.lab.bench.load import fill
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.scenario import BenchScenario
from faultline.store import calls
from faultline.store.driver.connect import connect
from faultline.store.pool import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogSize:
    """Jobs that stay waiting; jobs drained before them; timed claims, and how many jobs each takes."""

    depths: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    jobs: int = 20_000
    room: int = 100
    claims: int = 200


def cases(stand: CaseRunner, size: BacklogSize) -> Iterator[CaseResult]:
    for depth in size.depths:
        with stand.case(f"{depth:,} waiting") as case:
            rate = fill(case, size.jobs + depth)
            checkpoint(case.dsn)
            times = spread(_claims(case, size), "claim_ms")
            facts = {"depth": depth, "enqueued_per_second": rate, **times}
            yield drain_part(case, size.jobs, depth, facts)


def _claims(case: Case, size: BacklogSize) -> list[float]:
    """Milliseconds of claims as a worker would wait for them; rolled back, so that all jobs stay waiting."""
    times = []
    with connect(case.dsn, prepare_threshold=2) as conn:
        for number in range(size.claims):
            call = calls.claim(["default"], size.room, lease=timedelta(seconds=15), claim=uuid4())
            with conn.transaction(force_rollback=True):
                began = time.perf_counter()
                Store.run_in(conn, call)
                times.append((time.perf_counter() - began) * 1e3)
            case.told("claim", number + 1, size.claims)
    return times


SCENARIO = BenchScenario(
    name="backlog",
    summary="claims and drain rate with 1,000 to 1,000,000 jobs waiting behind",
    full=BacklogSize(),
    quick=BacklogSize(depths=(100, 1_000), jobs=300, claims=10),
    cases=cases,
    every=0.25,
    columns=(
        "depth claim_ms_p50 claim_ms_p99 jobs_per_second client_cpu_us_per_job "
        "server_cpu_us_per_job session_cpu_us_per_job enqueued_per_second"
    ),
    plots=(
        Curve(name="rate", title="Drain rate by jobs waiting", x="depth", y=("jobs_per_second",), x_log=True),
        Curve(
            name="claim",
            title="Time of a claim of 100 jobs, by jobs waiting",
            x="depth",
            y=("claim_ms_p50", "claim_ms_p99"),
            y_label="milliseconds a claim",
            x_log=True,
        ),
    ),
)
