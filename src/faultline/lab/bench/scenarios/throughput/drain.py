"""Clean drain: how fast workers empty a full queue, and what a job costs on both sides."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import fill
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.scenario import BenchScenario
from faultline.store import calls


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSize:
    """No-op jobs of about 100 bytes, drained by so many worker processes; what the ledger keeps of them."""

    jobs: tuple[int, ...] = (20_000, 200_000)
    workers: tuple[int, ...] = (1, 2, 4)
    keep: tuple[str, ...] = ("full", "nothing")


def cases(stand: CaseRunner, size: DrainSize) -> Iterator[CaseResult]:
    for jobs, keep, workers in product(size.jobs, size.keep, size.workers):
        with stand.case(f"{jobs:,} jobs, keep={keep}, {workers} workers") as case:
            case.store.run(calls.set_retention("default", keep))
            rate = fill(case, jobs)
            label = f"{jobs:,} jobs, keep={keep}"
            facts = {"keep": keep, "load": label, "enqueued_per_second": rate}
            yield drain(case, jobs, facts, workers=workers)


SCENARIO = BenchScenario(
    name="drain",
    summary="no-op jobs drained by 1, 2 and 4 worker processes: rate, CPU, WAL and memory",
    full=DrainSize(),
    quick=DrainSize(jobs=(300,), workers=(1, 2), keep=("full",)),
    cases=cases,
    every=0.25,
    columns=(
        "jobs keep workers jobs_per_second client_cpu_us_per_job server_cpu_us_per_job "
        "wal_bytes_per_job commits_per_job enqueued_per_second worker_mb"
    ),
    plots=(
        Curve(
            name="workers",
            title="Drain rate by worker processes",
            x="workers",
            y=("jobs_per_second",),
            by="load",
        ),
    ),
)
