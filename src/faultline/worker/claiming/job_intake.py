"""JobIntake: takes claimed jobs in hand. Each lease goes into the lease table before its job can start."""

import logging
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from operator import itemgetter
from uuid import UUID

from faultline.failpoints import failpoint
from faultline.job import Job, JobContext
from faultline.store.call import Row
from faultline.store.rows import AT
from faultline.task import Registry
from faultline.telemetry import emit
from faultline.telemetry.events import has_listeners, is_logging
from faultline.worker.attempt import Attempt, StopReason
from faultline.worker.heartbeat.pacemaker_process import PacemakerProcess
from faultline.worker.state import WorkerState

END_EARLY_MAX = 0.2
"""A handler is stopped up to this many seconds before its hard deadline."""

_ID = itemgetter(AT.id)


class JobIntake:
    """Rows of a claim in, attempts in the worker's buffer out."""

    def __init__(
        self,
        state: WorkerState,
        tasks: Registry,
        pacemaker: PacemakerProcess,
        worker: int,
        context: JobContext,
    ) -> None:
        self.state = state
        self.tasks = tasks
        self.pacemaker = pacemaker
        self.worker = worker
        self.context = context
        self._lease = state.config.lease_for.total_seconds()
        self._timeout = state.config.timeout.total_seconds()

    def take(self, rows: list[Row], claim: UUID, sent: float, *, leaving: bool = False) -> None:
        """Write each lease, counted from before its claim was sent, and wake the executor.

        A worker that leaves starts none of the jobs: they are given back.
        """
        failpoint("claimed")
        if has_listeners():
            self.state.figures.claimed(rows, time.monotonic() - sent)
        self.state.go_on_measuring()
        here = self.state.at_work_on()
        attempts = list(self._attempts(rows, claim, sent))
        self.state.put(attempts)
        if leaving:
            for attempt in attempts:
                attempt.stopping = StopReason.LEAVING
        elif not here.keys().isdisjoint(map(_ID, rows)):
            self._look_for_others(attempts, here)
        if self.state.left is not None:
            self.state.left -= len(rows)
        self.state.tell_runners(len(rows))

    def _look_for_others(self, attempts: list[Attempt], here: Mapping[int, Attempt]) -> None:
        """Put off a job of which an attempt still runs here: that one lost its lease, and two never run."""
        for attempt in attempts:
            if old := here.get(attempt.job_id):
                attempt.stopping = StopReason.STILL_RUNNING
                attempt.wait_for = time.monotonic() - (old.told_at or time.monotonic())
                if old.stopping is None:
                    old.stop(StopReason.LOST)

    def _attempts(self, rows: list[Row], claim: UUID, sent: float) -> Iterator[Attempt]:
        find, write, context, claim_bytes = (
            self.tasks.get,
            self.state.lease_table.write,
            self.context,
            claim.bytes,
        )
        told, usual = is_logging(logging.DEBUG), _until_stopped(self._timeout)
        # fmt: off
        for (id, token, number, most, crashes, task, queue, args, key, created_at, own, timeout,
             retry, _, _, trace, _, _, _, seed, gate) in rows:
            lease_for = self._lease if own is None else self._own_lease(own)
            spec = find(task)
            if timeout is None and spec is not None:
                timeout = spec.timeout
            timeout_at = sent + (usual if timeout is None else _until_stopped(timeout.total_seconds()))
            job = Job(id, task, queue, number, most, crashes, token, key, created_at, context, seed)
            slot, generation = write(id, token, claim_bytes, lease_for, sent)
            yield Attempt(id, token, claim, lease_for, sent, job, spec, args, retry, timeout_at,
                       sent + lease_for, slot, generation, trace, gate)
            if told:
                emit("lease_acquired", logging.DEBUG, job_id=id, token=token, worker=self.worker, task=task,
                     attempt=number)
        # fmt: on

    def _own_lease(self, lease: timedelta) -> float:
        """The seconds of a job's own lease; of a short one the pacemaker learns before it sleeps past it."""
        seconds = lease.total_seconds()
        if seconds < self._lease:
            self.pacemaker.hurry(seconds)
        return seconds


def _until_stopped(seconds: float) -> float:
    """The seconds after which a handler is stopped: the worker reports a timeout before the watchdog does."""
    return seconds - min(END_EARLY_MAX, seconds * 0.05)
