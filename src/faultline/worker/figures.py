"""Figures of a worker, gathered for whoever counts: in batches, so that a job costs no event of its own.

While nobody listens nothing is gathered: `counted()` is asked before, and these methods are not called.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

from faultline.outcome import Done
from faultline.store.call import Row
from faultline.telemetry.events import counted, tell
from faultline.worker.hand import Hand

BATCH_MAX: Final = 2_000
"""Leases that ended and were not told yet: told at once when there are so many."""

QUESTIONS_MAX: Final = 200
"""Leases to ask the rows about; with more the rest go unasked, and the figures are a sample."""


class Figures:
    """What a worker's jobs came to since it was last told.

    The loops here run once for many jobs, and are most of what counting costs: a microsecond or two a job.
    """

    def __init__(self) -> None:
        self._ended: list[Hand] = []
        self.crashed: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Claimed jobs that had crashed before: did we take them over, and how soon?"""
        self.zombies: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Leases that were refused because a newer one exists: how long had it been there?"""

    def claimed(self, rows: list[Row], seconds: float) -> None:
        """A claim found work."""
        acquired: dict[str, list[float]] = {}
        retried: dict[tuple[str, str], int] = {}
        for row in rows:
            waited = _waited(row)
            waits = acquired.get(row[6])
            if waits is None:
                waits = acquired[row[6]] = []
            waits.append(waited)
            if row[2] > 1:
                retried[row[6], row[5]] = retried.get((row[6], row[5]), 0) + 1
            if row[4]:
                self.crashed.append((row[0], row[1]))
        tell("jobs_claimed", seconds=seconds, waits=acquired, retried=retried)

    def ended(self, hands: Iterable[Hand]) -> None:
        """Leases have ended, one way or another; said twice of one, it has ended once."""
        self._ended += [hand for hand in hands if hand.generation]
        if len(self._ended) >= BATCH_MAX:
            self.flush()

    def refused(self, hand: Hand, reason: str) -> None:
        """The fence has refused a write of this lease."""
        if reason == "token_mismatch" and counted():
            self.zombies.append((hand.job_id, hand.token))

    def flush(self) -> None:
        """Tell what has been gathered: how many ended how, and the seconds their handlers took."""
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        counts: dict[tuple[str, str, str], int] = {}
        took: dict[tuple[str, str], list[float]] = {}
        for hand in ended:
            queue, task = hand.job.queue, hand.job.task
            kind = queue, task, how_ended(hand)
            counts[kind] = counts.get(kind, 0) + 1
            if hand.ran_for is not None:
                seconds = took.get((queue, task))
                if seconds is None:
                    seconds = took[queue, task] = []
                seconds.append(hand.ran_for)
        tell("jobs_settled", counts=counts, took=took)


def how_ended(hand: Hand) -> str:
    """How a lease ended, in one word; `lost` when it was taken from us before there was anything to say."""
    if hand.ended_as is not None:
        return hand.ended_as
    if hand.settled or type(hand.outcome) is Done:
        return "succeeded"
    if hand.outcome is None:
        return "lost"
    return "dead" if hand.job.attempt >= hand.job.max_attempts else "failed"


def _waited(row: Row) -> float:
    """Seconds from when it was due to its claim, by the database's clock; not a number where no row tells."""
    due_at, claimed_at = row[16], row[17]
    if type(due_at) is int:  # as a worker's own line reads it: microseconds
        return float(claimed_at - due_at) / 1e6
    if due_at is None or claimed_at is None:
        return math.nan
    return float((claimed_at - due_at).total_seconds())
