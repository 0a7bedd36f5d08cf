"""Offered rates: how long jobs wait when they come at a fixed rate, up to where the queue grows."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.load import offer
from faultline.lab.bench.measure.latency import waits
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.run_bench import at_work
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRatesSize:
    """Jobs a second, and for how long."""

    rates: tuple[int, ...] = (1_000, 5_000, 10_000, 20_000)
    seconds: int = 10
    workers: int = 1


def cases(stand: CaseRunner, size: OfferedRatesSize) -> Iterator[CaseResult]:
    for rate in size.rates:
        with stand.case(f"{rate:,}/s") as case:
            with at_work(case, size.workers) as run:
                began = time.perf_counter()
                sent = offer(case, rate, size.seconds)
                run.wait_for(sent.jobs)
                run.wait_until_empty()
                seconds = time.perf_counter() - began
                waited = waits(run, sent)
            yield run.found(sent.jobs, seconds, {"rate": rate, "workers": size.workers, **waited})


SCENARIO = BenchScenario(
    name="offered",
    summary="jobs offered at 1,000 to 20,000 a second: waiting times at each rate",
    full=OfferedRatesSize(),
    quick=OfferedRatesSize(rates=(200, 500), seconds=1),
    cases=cases,
    columns=(
        "rate jobs_per_second pickup_ms_p50 pickup_ms_p95 pickup_ms_p99 pickup_ms_max end_ms_p50 "
        "end_ms_p99 server_cpu_us_per_job"
    ),
    plots=(
        Curve(
            name="waits",
            title="How long a job waits, by the rate at which jobs come",
            x="rate",
            y=("pickup_ms_p50", "pickup_ms_p99", "pickup_ms_max"),
            y_label="milliseconds to the handler's start",
            x_log=True,
            y_log=True,
        ),
        Curve(
            name="cost",
            title="CPU a job takes, by the rate at which jobs come",
            x="rate",
            y=("client_cpu_us_per_job", "server_cpu_us_per_job"),
            y_label="CPU microseconds a job",
            x_log=True,
        ),
    ),
)
