"""Idle: many workers with nothing to do, and what they cost the database."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from faultline.lab.bench.case import CaseResult, CaseRunner, Row
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.run_bench import BenchRun, at_work
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSize:
    """Idle worker processes, and for how many seconds they are watched."""

    workers: tuple[int, ...] = (1, 10, 50)
    seconds: float = 15.0
    settle_seconds: float = 3.0


def cases(stand: CaseRunner, size: IdleSize) -> Iterator[CaseResult]:
    for workers in size.workers:
        with stand.case(f"{workers} idle workers") as case:
            with at_work(case, workers) as run:
                time.sleep(size.settle_seconds)  # first polls, partitions and floors are not idleness
                shares = _watch(run, size.seconds)
            peak = max(run.weights, key=lambda weight: weight.total_mb)
            memory = {"worker_mb": peak.worker_mb / workers, "pacemaker_mb": peak.pacemaker_mb / workers}
            yield CaseResult({"case": case.label, "workers": workers, **shares, **memory}, run.sampler.series)


def _watch(run: BenchRun, seconds: float) -> Row:
    """What both sides use while nothing happens, in per cent of a core."""
    run.meter.start(run.workers.pids)
    began = time.perf_counter()
    time.sleep(seconds)
    run.meter.stop()
    lasted = time.perf_counter() - began
    used = {side: run.meter.cpu_seconds(side) for side in ("server", "client")}
    return {"seconds": lasted} | {
        f"{side}_cpu_percent": cpu and cpu / lasted * 100 for side, cpu in used.items()
    }


SCENARIO = BenchScenario(
    name="idle",
    summary="CPU of the database, and of the workers, while 1 to 50 workers have nothing to do",
    full=IdleSize(),
    quick=IdleSize(workers=(2,), seconds=0.5, settle_seconds=0.2),
    cases=cases,
    every=5.0,
    columns="workers seconds server_cpu_percent client_cpu_percent worker_mb pacemaker_mb",
    plots=(
        Curve(
            name="cpu",
            title="What idle workers cost the database",
            x="workers",
            y=("server_cpu_percent",),
        ),
    ),
)
