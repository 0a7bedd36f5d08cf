"""Sustained: a producer holds the queue at one depth, so that enqueueing and draining compete."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.load import BATCH, noop, padding
from faultline.lab.bench.plots.plot import OverTime
from faultline.lab.bench.run_bench import BenchRun, at_work
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedSize:
    """How long, how deep, and how large the jobs are."""

    seconds: int = 40
    depth: int = 2_000
    payload_bytes: tuple[int, ...] = (100, 330)
    workers: int = 1


def cases(stand: CaseRunner, size: SustainedSize) -> Iterator[CaseResult]:
    for payload in size.payload_bytes:
        with stand.case(f"{payload} bytes") as case:
            with at_work(case, size.workers) as run:
                began = time.perf_counter()
                sent = _hold(run, size, payload)
                run.wait_for(sent)
                run.wait_until_empty()
                seconds = time.perf_counter() - began
            facts = {"payload_bytes": payload, "depth": size.depth, "workers": size.workers}
            yield run.found(sent, seconds, facts)


def _hold(run: BenchRun, size: SustainedSize, payload: int) -> int:
    """Enqueue whatever is missing from the depth, over and over; answers how many jobs that were."""
    make = partial(noop, pad=padding(payload))
    began, sent = time.perf_counter(), 0
    while (at := time.perf_counter() - began) < size.seconds:
        missing = min(size.depth - (sent - run.count), BATCH)
        if missing < size.depth // 10:
            time.sleep(0.001)
            continue
        run.case.app.enqueue_many([make(number) for number in range(sent, sent + missing)])
        sent += missing
        run.case.told("hold", round(at), size.seconds)
    return sent


SCENARIO = BenchScenario(
    name="sustained",
    summary="one producer holds 2,000 jobs waiting: enqueueing and draining at once",
    full=SustainedSize(),
    quick=SustainedSize(seconds=1, depth=200, payload_bytes=(100,)),
    cases=cases,
    columns=(
        "payload_bytes depth jobs jobs_per_second client_cpu_us_per_job server_cpu_us_per_job "
        "wal_bytes_per_job hot_share worker_mb"
    ),
    plots=(
        OverTime(name="rate", title="Enqueued and drained at a held depth", y="jobs_per_second"),
        OverTime(name="sizes", title="Size of the table of due and running jobs", y="active_mb"),
    ),
)
