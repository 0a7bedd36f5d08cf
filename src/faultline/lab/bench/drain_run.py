"""A drain: workers start on a full queue; the clock runs from the first handler until nothing is left."""

import time
from collections.abc import Mapping, Sequence

from faultline.lab.bench.case import Case, CaseResult, Row
from faultline.lab.bench.run_bench import at_work


def drain(
    case: Case,
    jobs: int,
    facts: Row,
    *,
    workers: int = 1,
    options: Sequence[str] = (),
    runs: int | None = None,
    reach: Mapping[str, str] | None = None,
) -> CaseResult:
    """Drain all jobs of the queues; `runs` is the number of attempts, where it differs."""
    with at_work(case, workers, options, on_full_queue=True, reach=reach) as run:
        run.wait_for(jobs if runs is None else runs)
        seconds = run.wait_until_empty() - run.workers.boards.first_at
    return run.found(jobs, seconds, {"workers": workers, **facts})


def drain_warm(case: Case, warm_up: int, jobs: int, facts: Row, *, options: Sequence[str] = ()) -> CaseResult:
    """Drain jobs of which the first count for nothing: the clock runs from when so many have begun."""
    with at_work(case, options=options, on_full_queue=True) as run:
        run.wait_for(warm_up, poll_seconds=0.001)
        run.meter.start(run.workers.pids)
        before, began = run.count, time.time()
        run.wait_for(warm_up + jobs)  # asks no session of the server
        seconds = run.wait_until_empty() - began
    measured = max(1, warm_up + jobs - before)  # of a small size, all may have begun by then
    return run.found(measured, seconds, facts, behind=before)


def drain_part(case: Case, jobs: int, behind: int, facts: Row) -> CaseResult:
    """Drain so many jobs of those in the queue, and leave the others behind."""
    with at_work(case, on_full_queue=True) as run:
        run.wait_for(jobs)
        begun, seconds = run.count, time.time() - run.workers.boards.first_at
    return run.found(begun, seconds, facts, behind=jobs + behind - begun)
