"""The overseer: looks at every job in hand a few times a second, and stops the handlers that must stop."""

import asyncio
import logging
import time

from faultline.telemetry import emit
from faultline.telemetry.events import hears
from faultline.worker.hand import Hand
from faultline.worker.outage import Outage
from faultline.worker.shelf import Shelf

log = logging.getLogger("faultline.worker")

LOOK_EVERY_MAX = 0.25
LOOK_EVERY_MIN = 0.005


class Overseer:
    """One look for all jobs, where a timer a job would cost more than the job."""

    def __init__(self, shelf: Shelf, outage: Outage, worker: int) -> None:
        self.shelf = shelf
        self.outage = outage
        self.worker = worker

    async def run(self) -> None:
        """Look until cancelled.

        The loop turning is itself a sign of life, written where the pacemaker reads it.
        """
        while True:  # noqa: ASYNC110 - the look itself is the work
            await asyncio.sleep(self.look())

    def look(self) -> float:
        """Stop whom it is time to stop; answers in how many seconds to look again."""
        now = time.monotonic()
        hands = [*self.shelf.running, *self.shelf.buffer]
        lease = self.shelf.config.lease_for.total_seconds()
        shortest = min((hand.lease_for for hand in hands), default=lease)
        self.shelf.board.tick(shortest)
        for hand in hands:
            if hand.stopping is not None:
                hand.press()
            elif why := self._must_stop(hand, now):
                self._tell(hand, why)
                hand.stop(why)
        next_end = min(
            (hand.timeout_at for hand in hands if hand.stopping is None), default=now + LOOK_EVERY_MAX
        )
        return max(LOOK_EVERY_MIN, min(LOOK_EVERY_MAX, shortest / 20, next_end - now))

    def _must_stop(self, hand: Hand, now: float) -> str | None:
        renewed_to = hand.safe_at
        answer = hand.heard(self.shelf.board)
        if hand.safe_at > renewed_to and hears(logging.DEBUG):
            job = hand.job
            emit(
                "heartbeat", logging.DEBUG, job_id=job.id, token=job.token, worker=self.worker, task=job.task
            )
        if answer is not None and answer.word in ("lost", "cancel"):
            return answer.word
        if now >= hand.timeout_at:
            return "timeout"
        # Before the lease ends, not when: the handler needs a moment to stop, and the clock here is the
        # earlier one.
        if now >= hand.safe_at - hand.lease_for * 0.1:
            return "not_renewed"
        return None

    def _tell(self, hand: Hand, why: str) -> None:
        job = hand.job
        if why == "timeout":
            log.warning(
                "stopping job %d (%s), attempt %d: it ran into its timeout", job.id, job.task, job.attempt
            )
        elif why == "not_renewed":
            # An outage stops all jobs in hand at once, so these share the outage's one line in five seconds.
            self.outage.tell(
                "stopping jobs whose leases could not be renewed in time, such as %d (%s)", job.id, job.task
            )
