"""Figures of a worker, gathered for whoever counts: in batches, so that a job costs no event of its own.

While nobody listens nothing is gathered: `counted()` is asked before, and these methods are not called.
"""

from collections import deque
from datetime import timedelta
from typing import Final

from faultline.outcome import Failed
from faultline.store.call import Row
from faultline.telemetry.events import counted, tell
from faultline.worker.hand import Hand

BATCH_MAX: Final = 2_000
"""Jobs that ended and were not told yet: told at once when there are so many."""

QUESTIONS_MAX: Final = 200
"""Leases to ask the rows about; with more the rest go unasked, and the figures are a sample."""

Settled = tuple[str, str, str, float | None]
"""Queue, task, how its lease ended, seconds its handler took."""

Taken = tuple[str, str, int, float | None]
"""Queue, task, attempt, seconds it had been due."""


class Figures:
    """What a worker's jobs came to since it was last told."""

    def __init__(self) -> None:
        self._ended: list[Settled] = []
        self.crashed: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Claimed jobs that had crashed before: did we take them over, and how soon?"""
        self.zombies: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Leases that were refused because a newer one exists: how long had it been there?"""

    def claimed(self, rows: list[Row], seconds: float) -> None:
        """A claim found work."""
        taken: list[Taken] = [(row[6], row[5], row[2], _waited(row)) for row in rows]
        tell("jobs_claimed", seconds=seconds, jobs=taken)
        self.crashed.extend((row[0], row[1]) for row in rows if row[4])

    def ended(self, hand: Hand) -> None:
        """A lease has ended, one way or another."""
        job = hand.job
        self._ended.append((job.queue, job.task, how_ended(hand), hand.ran_for))
        if len(self._ended) >= BATCH_MAX:
            self.flush()

    def refused(self, hand: Hand, reason: str) -> None:
        """The fence has refused a write of this lease."""
        if reason == "token_mismatch" and counted():
            self.zombies.append((hand.job_id, hand.token))

    def flush(self) -> None:
        """Tell what has been gathered."""
        if self._ended:
            ended, self._ended = self._ended, []
            tell("jobs_settled", jobs=ended)


def how_ended(hand: Hand) -> str:
    """How a lease ended, in one word; `lost` when it was taken from us before there was anything to say."""
    if hand.ended_as is not None:
        return hand.ended_as
    if hand.settled:
        return "succeeded"
    if hand.outcome is None:
        return "lost"
    if isinstance(hand.outcome, Failed):
        return "dead" if hand.job.attempt >= hand.job.max_attempts else "failed"
    return "succeeded"


def _waited(row: Row) -> float | None:
    """Seconds from when it was due to its claim, by the database's clock; None where no row tells."""
    due_at, claimed_at = row[16], row[17]
    if due_at is None or claimed_at is None:
        return None
    waited = claimed_at - due_at
    return waited.total_seconds() if isinstance(waited, timedelta) else float(waited) / 1e6
