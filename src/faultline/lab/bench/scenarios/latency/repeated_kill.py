"""Repeated kill: one of two workers is killed every few seconds and started again; what is lost by it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from faultline.lab.bench.case import CaseResult, CaseRunner, Row
from faultline.lab.bench.load import nap, offer
from faultline.lab.bench.measure.questions import ask_all
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.plots.plot import OverTime
from faultline.lab.bench.run_bench import BenchRun, at_work
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedKillSize:
    """Jobs a second, each taking so long; a kill each so many seconds; the lease they work under."""

    rate: int = 400
    seconds: int = 60
    kill_every_seconds: float = 5.0
    handler_ms: int = 20
    lease: str = "15s"
    workers: int = 2


def cases(stand: CaseRunner, size: RepeatedKillSize) -> Iterator[CaseResult]:
    with stand.case(f"lease {size.lease}") as case:
        with at_work(case, size.workers, ["--lease", size.lease]) as run:
            began = time.perf_counter()
            with _killing(run, size.kill_every_seconds) as killed_at:
                sent = offer(case, size.rate, size.seconds, nap("nap", size.handler_ms))
            run.sampler.mark("no more jobs")
            run.wait_until_empty(poll_seconds=0.2)
            seconds = time.perf_counter() - began
            recoveries = _recoveries(run, killed_at)
        facts: Row = {"rate": size.rate, "workers": size.workers, "kills": len(killed_at)}
        yield run.found(sent.jobs, seconds, facts | spread(recoveries, "recovery_seconds"))


@contextmanager
def _killing(run: BenchRun, every: float) -> Iterator[dict[str, float]]:
    """Kill the older worker and start a new one, again and again beside the block; records each death."""
    killed_at: dict[str, float] = {}
    names = [f"bench-{number + 1}" for number in range(len(run.workers.processes))]
    over = threading.Event()

    def kill() -> None:
        while not over.wait(every):
            run.sampler.mark("kill")
            killed_at[names.pop(0)] = time.time()
            run.workers.kill(0)
            names.append(f"bench-again-{len(killed_at)}")
            run.workers.start(names[-1])

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        yield killed_at
    finally:
        over.set()
        killer.join()


def _recoveries(run: BenchRun, killed_at: dict[str, float]) -> list[float]:
    """Seconds from a worker's death until another worker began each job it had held."""
    found = ask_all(run.probe.conn, "recoveries")
    return [row["claimed_again_at"] - killed_at[row["name"]] for row in found if row["name"] in killed_at]


SCENARIO = BenchScenario(
    name="kill",
    summary="one of two workers is killed every 5 s and started again: lost, run again, seconds to recover",
    full=RepeatedKillSize(),
    quick=RepeatedKillSize(rate=100, seconds=3, kill_every_seconds=1.3, lease="1s"),
    cases=cases,
    columns=(
        "jobs kills succeeded lost succeeded_twice run_again recovery_seconds_p50 "
        "recovery_seconds_max jobs_per_second"
    ),
    plots=(
        OverTime(name="rate", title="Jobs begun while one of two workers is killed", y="jobs_per_second"),
    ),
)
