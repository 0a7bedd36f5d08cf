"""Jobs that are enqueued while a call is under way: which of them go together, and what each is answered."""

import copy
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol, Self, TypeVar

import psycopg

from faultline.client.batch_sizes import GATHERED_BYTES_MAX, GATHERED_JOBS_MAX
from faultline.client.unanswered import reply_was_lost, unknown
from faultline.errors import (
    DatabaseError,
    InputError,
    KeyConflict,
    PermissionDenied,
    QueueFull,
    SchemaOutdated,
    ServerUnavailable,
)
from faultline.job import NewJob
from faultline.store.calls import TEXT_BYTES_MIN
from faultline.store.rows import EnqueuedRow, MadeJob

BYTES_OF_CHARACTER_MAX: Final = 4

OVERTAKE_SECONDS: Final = 0.1
"""How long the jobs behind a leader wait for it."""


class Alone(Enum):
    """The answer for a job that its caller has to send by itself."""

    FIRST = "nothing of it was written"
    AGAIN = "its reply was lost, and it has a key"


Answer = MadeJob | Alone | Exception
"""What one caller is told: its job, its own error, or that it sends its job by itself."""


class WaitingJob(Protocol):
    """A job that waits for the call under way."""

    @property
    def new(self) -> NewJob:
        """The job."""
        ...

    @property
    def is_left(self) -> bool:
        """Whether its caller was cancelled."""
        ...


class WaitingCaller(WaitingJob, Protocol):
    """The same, where its caller is answered by `tell`."""

    def tell(self, answer: Answer) -> None: ...


W = TypeVar("W", bound=WaitingJob)
C = TypeVar("C", bound=WaitingCaller)


def gathers(new: NewJob) -> bool:
    """Whether a job goes with others: a long one would keep them waiting.

    >>> gathers(NewJob(task="a", args="{}", max_attempts=1))
    True
    """
    return len(new.args) <= TEXT_BYTES_MIN


def take(
    waiting: deque[W], jobs_max: int = GATHERED_JOBS_MAX, bytes_max: int = GATHERED_BYTES_MAX
) -> list[W]:
    """The next batch, in the order of arrival, without the jobs whose callers left."""
    batch: list[W] = []
    size = 0
    while waiting and len(batch) < jobs_max:
        if not waiting[0].is_left:
            size += _bytes(waiting[0].new)
            if batch and size > bytes_max:
                break
            batch.append(waiting[0])
        waiting.popleft()
    return batch


def _bytes(new: NewJob) -> int:
    """The args and the trace as bytes, or more: to encode them for this would take longer than the rest."""
    size = len(new.args) if new.args.isascii() else len(new.args) * BYTES_OF_CHARACTER_MAX
    return size + len(new.trace or "") + len(new.retry or "")


def send_alone(waiting: deque[C]) -> None:
    """Let each caller that waits send its job by itself."""
    while waiting:
        waiting.popleft().tell(Alone.FIRST)


class Answering:
    """A block around the call of a batch: each caller is answered, whatever becomes of the call.

    An error of the call is the callers' alone; what ends a task or a thread leaves the block as well.
    """

    __slots__ = ("_batch", "jobs")

    def __init__(self, batch: Sequence[WaitingCaller]) -> None:
        self._batch = batch
        self.jobs = [waiting.new for waiting in batch]

    def __enter__(self) -> Self:
        return self

    def answer(self, told: Sequence[Answer]) -> None:
        for waiting, answer in zip(self._batch, told, strict=True):
            waiting.tell(answer)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            return False
        self.answer(answers_after(error, self.jobs))
        return isinstance(error, Exception)


def answers(rows: Sequence[EnqueuedRow]) -> list[Answer]:
    """The answers after a commit. A job without an id was not written: by itself it may wait, or conflict."""
    return [Alone.FIRST if row.id is None else MadeJob(row.id, row.is_new) for row in rows]


def answers_after(error: BaseException, jobs: Sequence[NewJob]) -> list[Answer]:
    """The answers of a batch that got no rows."""
    if is_refusal(error):
        return [Alone.FIRST] * len(jobs)  # for the sake of one of them, and only that one is to fail
    if not isinstance(error, Exception) or reply_was_lost(error):
        return [_unknown(error) if new.key is None else Alone.AGAIN for new in jobs]
    repeats = isinstance(error, ServerUnavailable)
    return [Alone.AGAIN if repeats and new.key is not None else _own(error) for new in jobs]


def is_refusal(error: BaseException) -> bool:
    """Whether the database, or the driver before it, refused the call: nothing was written, for good.

    A server that is away or read-only is none: it would refuse each job by itself as well.
    """
    if isinstance(
        error, InputError | KeyConflict | QueueFull | PermissionDenied | SchemaOutdated | UnicodeError
    ):
        return True
    return isinstance(error, psycopg.Error) and error.sqlstate is not None


def _unknown(error: BaseException) -> Exception:
    told = unknown()
    told.__cause__ = error
    return told


def _own(error: Exception) -> Exception:
    """An error for one caller: a raised error collects the frames of its caller."""
    if not isinstance(error, DatabaseError):
        return error
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return own
