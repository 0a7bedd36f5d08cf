"""Many queues: the same number of jobs spread over 1 to 1,000 queues, one worker on all of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from faultline.lab.bench.case import Case, CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import BATCH, noop
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyQueuesSize:
    """Jobs in all, and over how many queues."""

    queues: tuple[int, ...] = (1, 4, 100, 1_000)
    jobs: int = 20_000


def cases(stand: CaseRunner, size: ManyQueuesSize) -> Iterator[CaseResult]:
    for count in size.queues:
        with stand.case(f"{count:,} queues") as case:
            names = [f"q{number}" for number in range(count)]
            _spread(case, names, size.jobs)
            yield drain(case, size.jobs, {"queues": count}, options=["--queues", ",".join(names)])


def _spread(case: Case, names: list[str], jobs: int) -> None:
    """Deal the jobs out evenly; neighbours of one queue go in one call."""
    bounds = [jobs * number // len(names) for number in range(len(names) + 1)]
    made = (
        noop(number, queue=name)
        for name, first, last in zip(names, bounds[:-1], bounds[1:], strict=True)
        for number in range(first, last)
    )
    for done in range(0, jobs, BATCH):
        case.app.enqueue_many([next(made) for _ in range(min(BATCH, jobs - done))])
        case.told("enqueue", done, jobs)


SCENARIO = BenchScenario(
    name="queues",
    summary="20,000 jobs in 1, 4, 100 and 1,000 queues, one worker on all of them",
    full=ManyQueuesSize(),
    quick=ManyQueuesSize(queues=(20,), jobs=300),
    cases=cases,
    every=0.25,
    columns=("queues jobs jobs_per_second client_cpu_us_per_job server_cpu_us_per_job wal_bytes_per_job"),
    plots=(Curve(name="rate", title="Drain rate by queues", x="queues", y=("jobs_per_second",), x_log=True),),
)
