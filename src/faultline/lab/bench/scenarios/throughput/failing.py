"""Failing: one job in ten fails at its first attempt and is tried again a tenth of a second later."""

from collections.abc import Iterator
from dataclasses import dataclass

from faultline.job import NewJob
from faultline.lab.bench.bench_app import FAILING_ONE_IN
from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import fill
from faultline.lab.bench.scenario import BenchScenario
from faultline.task import MAX_ATTEMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingSize:
    """How many jobs, and by how many workers."""

    jobs: int = 20_000
    workers: tuple[int, ...] = (1, 2)


def cases(stand: CaseRunner, size: FailingSize) -> Iterator[CaseResult]:
    for workers in size.workers:
        with stand.case(f"{workers} workers") as case:
            fill(case, size.jobs, _failing)
            runs = size.jobs + -(-size.jobs // FAILING_ONE_IN)
            yield drain(case, size.jobs, {}, workers=workers, runs=runs)


def _failing(number: int) -> NewJob:
    return NewJob(task="fail_once", args=f'{{"n":{number}}}', max_attempts=MAX_ATTEMPTS)


SCENARIO = BenchScenario(
    name="failing",
    summary="20,000 jobs of which one in ten fails once",
    full=FailingSize(),
    quick=FailingSize(jobs=200, workers=(1,)),
    cases=cases,
    every=0.25,
    columns=(
        "workers jobs run_again lost jobs_per_second client_cpu_us_per_job server_cpu_us_per_job "
        "wal_bytes_per_job commits_per_job"
    ),
)
