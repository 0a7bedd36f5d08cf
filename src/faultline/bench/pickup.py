"""How soon an idle worker begins a job that was just committed, and what it weighs, idle and draining."""

import time
from dataclasses import dataclass
from statistics import quantiles
from typing import Any, Final

from faultline.bench.board import STAMPS_MAX
from faultline.bench.drain import GIVE_UP_SECONDS, QUEUE, Progress, enqueue, wait_until_empty
from faultline.bench.processes import Workers, workers
from faultline.bench.weight import Weight, heaviest, weigh
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.run import Store

WARM_UP: Final = 20
JOBS_MAX: Final = STAMPS_MAX - WARM_UP
REST_SECONDS: Final = 2.0
DRAIN_JOBS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Pickup:
    """Latencies in milliseconds from the commit's reply to the handler's first line, and memory."""

    jobs: int
    after_commit_ms: list[float]
    with_enqueue_ms: list[float]
    idle: Weight
    draining: Weight

    def document(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs,
            "after_commit_ms": spread(self.after_commit_ms),
            "with_enqueue_ms": spread(self.with_enqueue_ms),
            "memory_idle": self.idle.document(),
            "memory_draining": self.draining.document(),
        }


def spread(values: list[float]) -> dict[str, float]:
    """The middle and the slow end of many values."""
    cuts = quantiles(values, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(values)}


def pickup(dsn: str, jobs: int, every_seconds: float, progress: Progress) -> Pickup:
    """Enqueue one job at a time for an idle worker and compare the moments: both sides read one clock."""
    store = Store(dsn, connections_max=2)
    try:
        with workers(dsn) as running:
            _warm_up(store, running)
            time.sleep(REST_SECONDS)
            idle = weigh(running.pids)
            sent = [_send(store, WARM_UP + number, every_seconds, progress) for number in range(jobs)]
            running.wait_for(WARM_UP + jobs, GIVE_UP_SECONDS)
            begun = [running.boards.moment(WARM_UP + number) for number in range(jobs)]
            draining = _drain(store, running, WARM_UP + jobs)
    finally:
        store.close()
    return Pickup(
        jobs=jobs,
        after_commit_ms=[(at - committed) / 1e6 for at, (_, committed) in zip(begun, sent, strict=True)],
        with_enqueue_ms=[(at - called) / 1e6 for at, (called, _) in zip(begun, sent, strict=True)],
        idle=idle,
        draining=draining,
    )


def _warm_up(store: Store, running: Workers) -> None:
    for number in range(WARM_UP):
        _send(store, number, 0.01, lambda what, done: None)
    running.wait_for(WARM_UP, GIVE_UP_SECONDS)


def _send(store: Store, number: int, every_seconds: float, progress: Progress) -> tuple[int, int]:
    """Enqueue one job as a producer does; answers when the call was made and when its commit was answered."""
    new = NewJob(task="stamp", args=f'{{"n":{number}}}', max_attempts=1)
    called = time.time_ns()
    store.run(calls.enqueue(new))
    committed = time.time_ns()
    store.run(calls.wake(QUEUE))
    progress("pickup", max(0, number + 1 - WARM_UP))
    time.sleep(max(0.0, every_seconds - (time.time_ns() - called) / 1e9))
    return called, committed


def _drain(store: Store, running: Workers, before: int) -> Weight:
    with heaviest(running.pids) as weights:
        enqueue(store, DRAIN_JOBS, lambda what, done: None)
        running.wait_for(before + DRAIN_JOBS, GIVE_UP_SECONDS)
        wait_until_empty(store)
    return weights[0]
