"""A run: workers at work on a case, measured from both sides until the block ends."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import fmean
from typing import Final

from faultline.lab.bench.bench_database import checkpoint
from faultline.lab.bench.case import Case, CaseResult, Row
from faultline.lab.bench.load import warm_up
from faultline.lab.bench.measure.meter import Meter
from faultline.lab.bench.measure.questions import ask
from faultline.lab.bench.measure.sampler import Gauge, RateGauge, Reading, Sampler
from faultline.lab.bench.measure.server_probe import ServerProbe
from faultline.lab.bench.measure.weight import MB, Weight, weigh
from faultline.lab.bench.worker_group import WorkerGroup, workers
from faultline.store import calls
from faultline.store.driver.connect import connect

GIVE_UP_SECONDS: Final = 300.0
WARM_UP: Final = 20


class BenchRun:
    """Workers at work: how far they are, and what they cost."""

    def __init__(self, case: Case, running: WorkerGroup, meter: Meter, probe: ServerProbe) -> None:
        self.case = case
        self.workers = running
        self.meter = meter
        self.probe = probe
        self.jobs_before = 0
        self.weights: list[Weight] = []
        self.sampler: Sampler

    @property
    def count(self) -> int:
        """How many handlers have begun since the warm-up."""
        return self.workers.boards.count - self.jobs_before

    def gauges(self) -> list[Gauge]:
        """What is looked at over and over."""
        return [
            RateGauge("jobs_per_second", lambda: self.count),
            self._sizes,
            self._weigh,
            ClaimFigures(self.probe),
        ]

    def _sizes(self) -> Reading:
        sizes = self.probe.sizes()
        megabytes = {name.replace("_bytes", "_mb"): sizes[name] / MB for name in sizes if "_bytes" in name}
        return {**megabytes, "dead_rows": sizes["dead_rows"]}

    def _weigh(self) -> Reading:
        self.weights.append(weigh(self.workers.pids))
        return {"worker_mb": self.weights[-1].worker_mb, "pacemaker_mb": self.weights[-1].pacemaker_mb}

    def wait_for(self, count: int, poll_seconds: float = 0.01) -> None:
        """Return when so many handlers have begun, and tell how it goes."""

        def reached() -> bool:
            begun = self.count
            self.case.told("run", min(begun, count), count)
            return begun >= count

        self.workers.wait_until(reached, f"not all of {count} jobs began", GIVE_UP_SECONDS, poll_seconds)

    def wait_until_empty(self, but: int = 0, poll_seconds: float = 0.002) -> float:
        """The moment at which the tables say that no job is unfinished, except so many scheduled ones."""

        def empty() -> bool:
            queues = self.case.store.run(calls.list_queues())
            at_hand = any(queue.due + queue.running for queue in queues)
            return not at_hand and sum(queue.scheduled for queue in queues) <= but

        self.workers.wait_until(empty, "jobs were left unfinished", GIVE_UP_SECONDS, poll_seconds)
        return time.time()

    def wait_until_registered(self, count: int) -> None:
        """Return when so many workers have registered."""

        def registered() -> bool:
            return len(self.case.store.run(calls.list_workers())) >= count

        self.workers.wait_until(registered, "a worker did not start", GIVE_UP_SECONDS, 0.05)

    @property
    def claim_ms(self) -> float | None:
        """What a claim took in the server, on average, where the server times them."""
        known = [value for value in self.sampler.series.values.get("claim_ms", []) if value is not None]
        return fmean(known) if known else None

    def found(self, jobs: int, seconds: float, facts: Row, behind: int = 0) -> CaseResult:
        """The figures of a run that is over: rate, costs, memory, and what became of the jobs.

        `behind` counts jobs that were left behind them and are not part of this run.
        """
        peak = max(self.weights, key=lambda weight: weight.total_mb)
        row: Row = {
            "case": self.case.label, **facts, "jobs": jobs, "seconds": seconds,
            "jobs_per_second": jobs / seconds, **self.meter.row(jobs), "worker_mb": peak.worker_mb,
            "pacemaker_mb": peak.pacemaker_mb, "shared_once_mb": peak.shared_once_mb,
            **proof(self.case, jobs + behind),
        }  # fmt: skip
        return CaseResult(row, self.sampler.series)


class ClaimFigures:
    """A gauge of how long a claim takes in the server, where the server times them."""

    def __init__(self, probe: ServerProbe) -> None:
        self._probe = probe
        self._last = probe.claims()

    def __call__(self) -> Reading:
        before, now = self._last, self._probe.claims()
        if now is None or (before is not None and now[0] == before[0]):
            return {"claim_ms": None}
        self._last = now
        calls_before, ms_before = before or (0, 0.0)
        return {"claim_ms": (now[1] - ms_before) / (now[0] - calls_before)}


@contextmanager
def at_work(
    case: Case,
    count: int = 1,
    options: Sequence[str] = (),
    *,
    on_full_queue: bool = False,
    reach: Mapping[str, str] | None = None,
) -> Iterator[BenchRun]:
    """Start workers and measure what the block has them do.

    `reach` is how they find their jobs, as variables of their environment: the DSN, unless said otherwise. On
    a full queue the clock starts with the first handler; else when all of them are up and warm.
    """
    case.hang_up()
    checkpoint(case.dsn)
    with ExitStack() as stack:
        probe = ServerProbe(case.dsn)
        stack.callback(probe.close)
        meter = stack.enter_context(Meter(probe))
        stack.callback(case.hang_up)
        running = stack.enter_context(workers(reach or {"FAULTLINE_DSN": case.dsn}, count, options))
        run = BenchRun(case, running, meter, probe)
        if on_full_queue:
            run.wait_for(1, poll_seconds=0.001)
        else:
            _warm_up(run, count)
        meter.start(run.workers.pids)
        run.sampler = Sampler(case.label, run.gauges(), case.every)
        with run.sampler:
            yield run
        meter.stop()


def _warm_up(run: BenchRun, workers: int) -> None:
    run.wait_until_registered(workers)
    run.case.app.enqueue_many(warm_up(number) for number in range(WARM_UP))
    run.wait_for(WARM_UP)
    run.wait_until_empty(but=sys.maxsize)
    run.jobs_before = WARM_UP


def proof(case: Case, jobs: int) -> Row:
    """How the jobs ended, counted in the tables; fewer figures where the ledger keeps nothing."""
    with connect(case.dsn) as conn:
        found = ask(conn, "proof")
    if not found.pop("all_kept"):
        return {"succeeded": None, "lost": None, "unfinished": found["unfinished"]}
    lost = jobs - found["succeeded"] - found["died"] - found["unfinished"]
    return {**found, "lost": lost}
