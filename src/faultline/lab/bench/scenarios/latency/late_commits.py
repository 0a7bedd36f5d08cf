"""Late commits: producers whose transactions stay open after they enqueued, beside prompt ones."""

import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from faultline.lab.bench.case import Case, CaseResult, CaseRunner
from faultline.lab.bench.load import Offered, offer, stamp
from faultline.lab.bench.measure.spread import spread
from faultline.lab.bench.plots.plot import Curve
from faultline.lab.bench.run_bench import at_work
from faultline.lab.bench.scenario import BenchScenario
from faultline.store import calls
from faultline.store.driver.connect import connect
from faultline.store.pool import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCommitsSize:
    """How long transactions stay open; late producers and jobs in each transaction; prompt jobs a second."""

    open_ms: tuple[int, ...] = (10, 1_000, 10_000)
    producers: int = 4
    batch: int = 10
    rate: int = 500
    seconds: int = 12


class LateProducers:
    """What late producers sent: the moment of each job's commit, in the order in which they were numbered."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.committed_at = array("q")
        self._turn = threading.Lock()

    def number(self, count: int) -> range:
        """Numbers for jobs to be sent; their commit is not yet known."""
        with self._turn:
            start = len(self.committed_at)
            self.committed_at.extend([0] * count)
        return range(start, start + count)

    def produce(self, case: Case, size: LateCommitsSize, open_ms: int, over: threading.Event) -> None:
        """Enqueue, stay open, commit; again and again."""
        with connect(case.dsn) as conn:
            while not over.is_set():
                numbers = self.number(size.batch)
                with conn.transaction():
                    Store.run_in(conn, calls.enqueue_many([stamp(self.first + number) for number in numbers]))
                    time.sleep(open_ms / 1e3)
                for number in numbers:
                    self.committed_at[number] = time.time_ns()
                Store.run_in(conn, calls.wake("default"))


def cases(stand: CaseRunner, size: LateCommitsSize) -> Iterator[CaseResult]:
    for open_ms in size.open_ms:
        with stand.case(f"open {open_ms:,} ms") as case:
            yield _case(case, size, open_ms)


def _case(case: Case, size: LateCommitsSize, open_ms: int) -> CaseResult:
    with at_work(case) as run:
        began = time.perf_counter()
        with _late_producers(case, size, open_ms) as late:
            prompt = offer(case, size.rate, size.seconds)
        jobs = prompt.jobs + len(late.committed_at)
        run.wait_for(jobs)
        run.wait_until_empty()
        seconds = time.perf_counter() - began
        begun = run.workers.boards.moments(jobs)
    waited = spread(prompt.waits_ms(begun[: late.first]), "pickup_ms")
    after = spread(Offered(late.committed_at).waits_ms(begun[late.first :]), "after_commit_ms")
    return run.found(jobs, seconds, {"open_ms": open_ms, **waited, **after})


@contextmanager
def _late_producers(case: Case, size: LateCommitsSize, open_ms: int) -> Iterator[LateProducers]:
    """They run beside the block; each ends with the commit of its last transaction."""
    late, over = LateProducers(size.rate * size.seconds), threading.Event()
    producers = [
        threading.Thread(target=late.produce, args=(case, size, open_ms, over), daemon=True)
        for _ in range(size.producers)
    ]
    for producer in producers:
        producer.start()
    try:
        yield late
    finally:
        over.set()
        for producer in producers:
            producer.join()


SCENARIO = BenchScenario(
    name="late",
    summary="producers that commit 10 ms, 1 s and 10 s after they enqueued, beside prompt ones",
    full=LateCommitsSize(),
    quick=LateCommitsSize(open_ms=(100,), producers=2, rate=100, seconds=1),
    cases=cases,
    columns=(
        "open_ms jobs pickup_ms_p50 pickup_ms_p99 pickup_ms_max after_commit_ms_p50 "
        "after_commit_ms_p99 after_commit_ms_max"
    ),
    plots=(
        Curve(
            name="waits",
            title="How long jobs wait beside transactions that stay open",
            x="open_ms",
            y_label="milliseconds to the handler's start",
            y=("pickup_ms_p50", "pickup_ms_p99", "after_commit_ms_p50", "after_commit_ms_p99"),
            x_log=True,
            y_log=True,
        ),
    ),
)
