"""Payload: the same drain with ever larger args."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.drain_run import drain
from faultline.lab.bench.load import fill, noop, padding
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSize:
    """Bytes of args a job, which do not compress; how many jobs, and how large all of them may be."""

    payload_bytes: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    jobs: int = 10_000
    all_bytes_max: int = 100_000_000


def cases(stand: CaseRunner, size: PayloadSize) -> Iterator[CaseResult]:
    for payload in size.payload_bytes:
        with stand.case(f"{payload:,} bytes") as case:
            jobs = min(size.jobs, size.all_bytes_max // payload)
            rate = fill(case, jobs, partial(noop, pad=padding(payload)))
            yield drain(case, jobs, {"payload_bytes": payload, "enqueued_per_second": rate})


SCENARIO = BenchScenario(
    name="payload",
    summary="drain of jobs that carry 100 bytes to 100 kB",
    full=PayloadSize(),
    quick=PayloadSize(payload_bytes=(100, 10_000), jobs=200),
    cases=cases,
    every=0.25,
    columns=(
        "payload_bytes jobs enqueued_per_second jobs_per_second client_cpu_us_per_job "
        "server_cpu_us_per_job wal_bytes_per_job worker_mb"
    ),
    plots=(
        Curve(
            name="rate",
            title="Enqueue and drain rate by the size of a job's args",
            x="payload_bytes",
            y=("enqueued_per_second", "jobs_per_second"),
            names=("enqueued", "drained"),
            y_label="jobs a second",
            x_log=True,
            y_log=True,
        ),
    ),
)
