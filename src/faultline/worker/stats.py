"""Figures of a worker for its metrics, gathered in batches: a job costs no event of its own.

Without a listener nothing is gathered: callers ask `has_listeners()` first.
"""

import math
from collections import deque
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from faultline.store.call import Row
from faultline.store.rows import AT
from faultline.telemetry.events import has_listeners, record_metric
from faultline.worker.attempt import COMMITTED, Attempt
from faultline.worker.settlement.settle import ended_as

BATCH_MAX: Final = 2_000
"""Leases that ended and were not told yet: told at once when there are so many."""

QUESTIONS_MAX: Final = 200
"""Leases to ask the rows about; with more the rest go unasked, and the figures are a sample."""

_FACTS: Final = itemgetter(
    AT.id, AT.token, AT.queue, AT.task, AT.attempt, AT.crashes, AT.due_at, AT.claimed_at
)


class WorkerStats:
    """What a worker's jobs came to since it was last told.

    The loops here run once for many jobs, and are most of what counting costs: a microsecond or two a job.
    """

    def __init__(self) -> None:
        self._ended: list[Attempt] = []
        self.crashed: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Claimed jobs that had crashed before: did we take them over, and how soon?"""
        self.zombies: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Leases that were refused because a newer one exists: how long had it been there?"""

    def claimed(self, rows: list[Row], seconds: float) -> None:
        """A claim found work."""
        acquired: dict[str, list[float]] = {}
        retried: dict[tuple[str, str], int] = {}
        for id, token, queue, task, attempt, crashes, due_at, claimed_at in map(_FACTS, rows):
            waits = acquired.get(queue)
            if waits is None:
                waits = acquired[queue] = []
            waits.append(_waited(due_at, claimed_at))
            if attempt > 1:
                retried[queue, task] = retried.get((queue, task), 0) + 1
            if crashes:
                self.crashed.append((id, token))
        record_metric("jobs_claimed", seconds=seconds, waits=acquired, retried=retried)

    def ended(self, attempts: Iterable[Attempt]) -> None:
        """Leases have ended, one way or another; said twice of one, it has ended once."""
        self._ended += [attempt for attempt in attempts if attempt.generation]
        if len(self._ended) >= BATCH_MAX:
            self.flush()

    def refused(self, attempt: Attempt, reason: str) -> None:
        """The fence has refused a write of this lease."""
        if reason == "token_mismatch" and has_listeners():
            self.zombies.append((attempt.job_id, attempt.token))

    def flush(self) -> None:
        """Tell what has been gathered: how many ended how, and the seconds their handlers took."""
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        counts: dict[tuple[str, str, str], int] = {}
        took: dict[tuple[str, str], list[float]] = {}
        for attempt in ended:
            queue, task = attempt.job.queue, attempt.job.task
            kind = queue, task, how_ended(attempt)
            counts[kind] = counts.get(kind, 0) + 1
            if attempt.ran_for is not None:
                seconds = took.get((queue, task))
                if seconds is None:
                    seconds = took[queue, task] = []
                seconds.append(attempt.ran_for)
        record_metric("jobs_settled", counts=counts, took=took)


def how_ended(attempt: Attempt) -> str:
    """How a lease ended, in one word; `lost` when it was taken from us before there was anything to say."""
    if attempt.ended_as is not None:
        return attempt.ended_as
    if attempt.phase is COMMITTED:
        return "succeeded"
    if attempt.outcome is None:
        return "lost"
    return ended_as(attempt.outcome, "dead" if attempt.job.attempt >= attempt.job.max_attempts else "")


def _waited(due_at: Any, claimed_at: Any) -> float:
    """Seconds from when it was due to its claim, by the database's clock; not a number where no row tells."""
    if type(due_at) is int:  # as a worker's own line reads it: microseconds
        return float(claimed_at - due_at) / 1e6
    if due_at is None or claimed_at is None:
        return math.nan
    return float((claimed_at - due_at).total_seconds())
