"""How fast workers drain a queue: from the first handler's start until the tables hold nothing more."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from faultline.bench.place import checkpoint
from faultline.bench.processes import workers
from faultline.bench.weight import Weight, cpu_seconds, heaviest
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.run import Store
from faultline.task import MAX_ATTEMPTS

BATCH: Final = 1_000
PAD: Final = "x" * 80
GIVE_UP_SECONDS: Final = 600.0
QUEUE: Final = "default"

Progress = Callable[[str, int], None]
"""Told what is going on and how many jobs of it are done."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What one drain cost."""

    jobs: int
    workers: int
    keep: str
    seconds: float
    cpu_us_per_job: float | None
    wal_bytes_per_job: float
    enqueued_per_second: float
    weight: Weight

    @property
    def jobs_per_second(self) -> float:
        return self.jobs / self.seconds

    def document(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs,
            "workers": self.workers,
            "keep": self.keep,
            "seconds": self.seconds,
            "jobs_per_second": self.jobs_per_second,
            "cpu_us_per_job": self.cpu_us_per_job,
            "wal_bytes_per_job": self.wal_bytes_per_job,
            "bulk_enqueued_per_second": self.enqueued_per_second,
            "memory_draining": self.weight.document(),
        }


def drain(dsn: str, jobs: int, progress: Progress, *, keep: str = "full", processes: int = 1) -> Drained:
    """Enqueue no-op jobs, start workers on the full queue, and measure until it is empty."""
    store = Store(dsn, connections_max=2)
    try:
        store.run(calls.keep(QUEUE, keep))
        rate = enqueue(store, jobs, progress)
        checkpoint(dsn)
        return _drain(store, dsn, jobs, progress, keep, processes, rate)
    finally:
        store.close()


def enqueue(store: Store, jobs: int, progress: Progress) -> float:
    """Put no-op jobs of about 100 bytes in their queue, a thousand a call; answers jobs a second."""
    began = time.perf_counter()
    for start in range(0, jobs, BATCH):
        batch = [_noop(number) for number in range(start, min(start + BATCH, jobs))]
        store.run(calls.enqueue_many(batch))
        progress("enqueue", start + len(batch))
    return jobs / (time.perf_counter() - began)


def _noop(number: int) -> NewJob:
    return NewJob(task="noop", args=f'{{"n":{number},"pad":"{PAD}"}}', max_attempts=MAX_ATTEMPTS)


def _drain(
    store: Store, dsn: str, jobs: int, progress: Progress, keep: str, processes: int, rate: float
) -> Drained:
    wal_before = store.run(calls.wal_written())
    with workers(dsn, processes) as running:
        running.wait_for(1, GIVE_UP_SECONDS, poll_seconds=0.001)
        cpu_before = cpu_seconds(running.pids)
        with heaviest(running.pids) as weights:
            while (count := running.boards.count) < jobs:
                running.check()
                progress("drain", count)
                time.sleep(0.01)
            ended_at = wait_until_empty(store)
        cpu_after = cpu_seconds(running.pids)
        wal_after = store.run(calls.wal_written())
        progress("drain", jobs)
        seconds = ended_at - running.boards.first_at
    cpu = None if cpu_before is None or cpu_after is None else (cpu_after - cpu_before) / jobs * 1e6
    return Drained(
        jobs=jobs, workers=processes, keep=keep, seconds=seconds, cpu_us_per_job=cpu,
        wal_bytes_per_job=(wal_after - wal_before) / jobs, enqueued_per_second=rate, weight=weights[0],
    )  # fmt: skip


def wait_until_empty(store: Store) -> float:
    """The moment at which the tables say that no job is unfinished."""
    while True:
        left = sum(queue.due + queue.running + queue.scheduled for queue in store.run(calls.list_queues()))
        if not left:
            return time.time()
        time.sleep(0.002)
