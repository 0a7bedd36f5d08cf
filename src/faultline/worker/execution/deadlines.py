"""The deadline monitor: looks at every job in hand a few times a second, and stops handlers in time."""

import asyncio
import logging
import math
import time
from collections.abc import Callable

from faultline.telemetry import emit
from faultline.telemetry.events import is_logging
from faultline.worker.attempt import OUT_OF_TIME, Attempt, AttemptPhase, HandlerState, StopReason
from faultline.worker.outage import Outage
from faultline.worker.state import WorkerState

log = logging.getLogger("faultline.worker")

LOOK_EVERY_MAX = 0.25
LOOK_EVERY_MIN = 0.005

HEED_SECONDS = 0.02
"""What a coroutine has to end in after its timeout, before its failure is recorded without it.

The database's own deadline is a moment later: past it the watchdog would count the attempt as a crash.
"""

TOLD_AFTER = 1.0
"""Seconds in which a handler may heed the end of its lease before a warning says that it goes on."""


class DeadlineMonitor:
    """One look for all jobs, where a timer a job would cost more than the job."""

    def __init__(
        self, state: WorkerState, give_up: Callable[[Attempt], None], outage: Outage, worker: int
    ) -> None:
        self.state = state
        self.give_up = give_up
        self.outage = outage
        self.worker = worker

    async def run(self) -> None:
        """Look until cancelled.

        The loop turning is itself a sign of life, written where the pacemaker reads it.
        """
        while True:  # noqa: ASYNC110 - the look itself is the work
            await asyncio.sleep(self.look())

    def look(self) -> float:
        """Stop the handlers whose time has come; answers in how many seconds to look again."""
        now = time.monotonic()
        attempts = [*self.state.running, *self.state.buffer]
        lease = self.state.config.lease_for.total_seconds()
        shortest = min((attempt.lease_for for attempt in attempts), default=lease)
        self._excuse_neighbours(now)
        self.state.lease_table.tick(shortest)
        for attempt in attempts:
            if attempt.stopping is not None:
                attempt.cancel_task()
                self._look_after(attempt, now)
            elif why := self._reason_to_stop(attempt, now):
                self._tell(attempt, why)
                attempt.stop(why)
        next_end = min((_look_at(attempt) for attempt in attempts), default=now + LOOK_EVERY_MAX)
        return max(LOOK_EVERY_MIN, min(LOOK_EVERY_MAX, shortest / 20, next_end - now))

    def _excuse_neighbours(self, now: float) -> None:
        """A handler that has blocked the loop kept the coroutines beside it from their work."""
        blocked, self.state.blocked = self.state.blocked, None
        if blocked is None or blocked.since != self.state.lease_table.ticked_at():
            return
        for attempt in self.state.running:
            if (
                attempt.job is not blocked.by
                and attempt.handler is HandlerState.HERE
                and attempt.spec is not None
                and attempt.spec.is_async
                and attempt.has_lost_too_much(now - blocked.since)
            ):
                attempt.is_excused = True

    def _look_after(self, attempt: Attempt, now: float) -> None:
        """A coroutine that swallows its cancellation keeps its runner; its attempt ends without it."""
        told_at = attempt.told_at
        if (
            told_at is None
            or attempt.handler in (HandlerState.IN_CHILD, HandlerState.ABANDONED)
            or attempt.phase is AttemptPhase.COMMITTING
            or attempt.stopping is StopReason.LEAVING
        ):
            return
        if _may_be_given_up(attempt) and now - told_at >= HEED_SECONDS:
            self.give_up(attempt)
        if now - told_at >= TOLD_AFTER and not attempt.warned:
            attempt.warned = True
            job = attempt.job
            log.warning(
                "the handler of job %d (%s) goes on after its lease ended (%s); its writes are fenced, its "
                "slot is lost until it returns: let CancelledError pass, and finish in `finally`",
                job.id, job.task, attempt.stopping,
            )  # fmt: skip

    def _reason_to_stop(self, attempt: Attempt, now: float) -> StopReason | None:
        renewed_to = attempt.safe_at
        why = attempt.reason_to_stop(self.state.lease_table, now)
        if attempt.safe_at > renewed_to and is_logging(logging.DEBUG):
            job = attempt.job
            emit(
                "heartbeat", logging.DEBUG, job_id=job.id, token=job.token, worker=self.worker, task=job.task
            )
        return why

    def _tell(self, attempt: Attempt, why: StopReason) -> None:
        job = attempt.job
        if why is StopReason.TIMEOUT:
            log.warning(
                "stopping job %d (%s), attempt %d: it ran into its timeout", job.id, job.task, job.attempt
            )
        elif why is StopReason.NOT_RENEWED:
            # An outage stops all jobs in hand at once, so these share the outage's one line in five seconds.
            self.outage.tell(
                "stopping jobs whose leases could not be renewed in time, such as %d (%s)", job.id, job.task
            )
        elif why is StopReason.HELD_UP:
            self.outage.tell(
                "giving back jobs whose time is over, since this worker was held up, such as %d (%s)",
                job.id, job.task,
            )  # fmt: skip


def _look_at(attempt: Attempt) -> float:
    """When a job in hand has to be looked at next, beside the looks that all of them get."""
    if attempt.stopping is None:
        return attempt.timeout_at
    told_at = attempt.told_at
    return math.inf if told_at is None or not _may_be_given_up(attempt) else told_at + HEED_SECONDS


def _may_be_given_up(attempt: Attempt) -> bool:
    is_out_of_time = attempt.stopping in OUT_OF_TIME
    return is_out_of_time and attempt.handler is HandlerState.HERE
