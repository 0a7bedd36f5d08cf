"""Many jobs in few calls: neighbours that differ only in args and key go together."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from faultline.client.batch_sizes import BULK_JOBS_FIRST, BULK_JOBS_MAX
from faultline.errors import InputError
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.call import Call


class BulkEnqueue:
    """Jobs on their way to one transaction; of sent jobs only the ids are kept.

    >>> jobs = [NewJob(task="a", args="{}", max_attempts=1, queue=queue) for queue in "xxyx"]
    >>> bulk = BulkEnqueue(jobs)
    >>> [len(call.args["args"].values) for call in bulk.calls()], sorted(bulk.due_queues)
    ([2, 1, 1], ['x', 'y'])
    """

    def __init__(self, jobs: Iterable[NewJob]) -> None:
        if isinstance(jobs, str | bytes | dict) or not isinstance(jobs, Iterable):
            raise _no_job(jobs)
        if isinstance(jobs, list | tuple) and jobs:
            _shared(jobs[0])  # before a connection is made
        self._jobs = jobs
        self.ids: list[int] = []
        self.due_queues: set[str] = set()
        self.counts: Counter[tuple[str, str]] = Counter()
        """How many jobs were sent, by queue and task."""
        self.trace: str | None = None
        """The trace context of all of them, unless a job has its own."""
        self.repeatable = True
        """Whether sending all of it again could add no job twice, because each has a key."""
        self._sent = 0
        self._answered = 0
        self._over = False

    @property
    def all_sent(self) -> bool:
        """Whether only the commit is left, whose lost reply would leave the outcome unknown."""
        return self._over and self._answered == self._sent

    def calls(self) -> Iterator[Call[list[int]]]:
        """One call for each batch of equal options, in the order given."""
        size = BULK_JOBS_FIRST
        for _, alike in groupby(self._jobs, key=_shared):
            while batch := list(islice(alike, size)):
                size = min(size * 2, BULK_JOBS_MAX)
                if is_due(batch[0]):
                    self.due_queues.add(batch[0].queue)
                self.repeatable = self.repeatable and batch[0].key is not None
                self._sent += 1
                self.counts[batch[0].queue, batch[0].task] += len(batch)
                yield calls.enqueue_many(batch, self.trace)
        self._over = True

    def add(self, ids: list[int]) -> None:
        """The database's answer to the next call in their order."""
        self._answered += 1
        self.ids += ids


_options_of: Final = attrgetter(*calls.OPTIONS, "trace")
"""The common part of the jobs of one call."""


def _shared(new: NewJob) -> tuple[Any, bool]:
    try:
        return _options_of(new), new.key is None
    except AttributeError:
        raise _no_job(new) from None


def _no_job(given: object) -> InputError:
    kind = type(given).__name__
    alone = " It is one job: put it in a list." if isinstance(given, NewJob) else ""
    return InputError(
        f"enqueue_many takes jobs made by `task.new(...)`, any number of them; got a {kind}.{alone} Nothing "
        "was sent. Write enqueue_many(charge.new(order_id=n) for n in orders)"
    )


def is_due(new: NewJob) -> bool:
    """Whether workers could take it at once; by our clock, which is exact enough for a hint."""
    if new.delay:
        return False
    return new.run_at is None or new.run_at <= datetime.now(UTC)


def due_queues(jobs: Iterable[NewJob]) -> list[str]:
    """The queues of the jobs that workers could take at once, each once."""
    return list(dict.fromkeys([new.queue for new in jobs if is_due(new)]))
