"""A job at each stage of its life: NewJob, Job, JobInfo, and its lines in the ledger."""

import threading
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, overload
from uuid import UUID, uuid5

import msgspec

from faultline.errors import BadName, FaultlineError, OutOfBounds
from faultline.text.suggest import did_you_mean

if TYPE_CHECKING:  # states are plain values: only the type checker follows the import
    from psycopg import IsolationLevel

    from faultline import SyncTransaction, Transaction
    from faultline.connections import AwaitedConnection, PlainConnection

EFFECT_NAME_CHARS_MAX = 200


class JobState(StrEnum):
    """The state of a job. One that waits for its time, at first or between attempts, is `queued`, too.

    >>> JobState("queued") is JobState.QUEUED
    True
    """

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True of the three final states."""
        return self in _ENDED


_OTHER_WORDS = {
    "waiting": "queued", "scheduled": "queued", "later": "queued", "due": "queued", "pending": "queued",
    "retrying": "queued", "retry": "queued", "failed": "queued, while attempts are left, or dead",
    "active": "running", "claimed": "running", "done": "succeeded", "completed": "succeeded",
    "success": "succeeded", "finished": "succeeded", "canceled": "cancelled", "discarded": "dead",
}  # fmt: skip


def read_state(text: str) -> JobState:
    """A state by its name, or OutOfBounds with the name it may have meant.

    >>> read_state("dead") is JobState.DEAD
    True
    """
    if text in list(JobState):
        return JobState(text)
    meant = _OTHER_WORDS.get(str(text).lower())
    hint = f"; did you mean {meant}?" if meant else did_you_mean(str(text), list(JobState)) or "."
    raise OutOfBounds(f"{str(text)[:40]!a} is not a job's state{hint} The states are {', '.join(JobState)}")


_ENDED = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED})


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be enqueued; `Task.new` makes them, already checked.

    A struct rather than a dataclass: a bulk enqueue makes them by the hundred thousand.

    >>> NewJob(task="charge", args='{"order_id":7}', max_attempts=10).queue
    'default'
    """

    task: str
    args: str
    max_attempts: int
    queue: str = "default"
    priority: int = 0
    run_at: datetime | None = None
    delay: timedelta | None = None
    lease_for: timedelta | None = None
    timeout: timedelta | None = None
    retry: str | None = None
    key: str | None = None
    key_for: timedelta | None = None
    key_rule: str | None = None
    """What becomes of it where its key names a job already; `Unique` makes the rules."""
    expires_at: datetime | None = None
    """Without a claim by this moment it ends as cancelled; or `expires_in`, from the enqueue on."""
    expires_in: timedelta | None = None
    trace: str | None = None
    """The trace context of the enqueue: a W3C traceparent, and after a blank its tracestate, if any."""
    limit: str | None = None
    """A limit in place of its task's."""
    limit_key: str | None = None
    """The key by which its limit counts, in place of the one in the args."""


class CompletionBlock(Protocol):
    """What `job.complete()` gives: a transaction on a psycopg connection, by `with` or by `async with`.

    Leaving the block commits the handler's rows, the job's success and its ledger entry together; an
    exception, or a lost lease, rolls all of it back.
    """

    def __enter__(self) -> "SyncTransaction": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool | None: ...

    async def __aenter__(self) -> "Transaction": ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool | None: ...


class JobContext(Protocol):
    """The worker's way to settle a job for its handler: by its own blocks, or in the user's transaction."""

    def complete(self, job: "Job", result: Any, isolation: "IsolationLevel | None") -> CompletionBlock: ...

    def fenced(self, job: "Job", isolation: "IsolationLevel | None") -> CompletionBlock: ...

    def complete_in(self, job: "Job", conn: Any, result: Any, *, savepoint: bool) -> Any: ...

    def fail_in(
        self, job: "Job", conn: Any, error: BaseException | str, delay: timedelta | None, *, savepoint: bool
    ) -> Any: ...

    def snooze_in(self, job: "Job", conn: Any, delay: timedelta, reason: str, *, savepoint: bool) -> Any: ...


SEED_BYTES: Final = 8

_MOMENT_0 = datetime(2000, 1, 1, tzinfo=UTC)

# One lock for all jobs: only the few threads that wait for a loss take it, and the loss itself.
_waiting = threading.Lock()


class Job(msgspec.Struct, eq=False, gc=False):
    """The job now running, as its handler sees it.

    Send `token` to the outside world as a fence (it only grows) and `idempotency_key(name)` as a key
    (it stays the same in every attempt).

    >>> from datetime import UTC
    >>> job = Job(7, "charge", "billing", 1, 10, 0, 3, None, datetime.now(UTC))
    >>> job.idempotency_key("intent")
    '4a202a41-49da-578a-8164-6f8be504c3a6'
    >>> job.lost
    False
    """

    id: int
    task: str
    queue: str
    attempt: int
    max_attempts: int
    crashes: int
    token: int
    key: str | None
    _created_at: datetime | int
    """As an int: the database's own count, in microseconds since 2000. Most handlers never ask."""
    _context: JobContext | None = None
    _key_seed: bytes | None = bytes(SEED_BYTES)
    """Random bytes of the job, the same in every attempt; zeros in a Job made without a worker."""
    _lost: bool = False
    _news: threading.Event | None = None
    _attempt: Any = None
    """The worker's record of the attempt, while its handler runs; kept for longer, neither would be freed."""

    @property
    def created_at(self) -> datetime:
        """When the job was enqueued."""
        made = self._created_at
        return _MOMENT_0 + timedelta(microseconds=made) if isinstance(made, int) else made

    @property
    def lost(self) -> bool:
        """True once the lease is known to be lost: stop, nothing of this attempt can commit.

        An async handler is cancelled; one that runs in a thread should look here between its steps.
        """
        return self._lost

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Sleep up to `timeout` seconds, ending early if the lease is lost; for threads, in place of `sleep`.

        >>> from datetime import UTC
        >>> Job(7, "charge", "billing", 1, 10, 0, 3, None, datetime.now(UTC)).wait_lost(0.0)
        False
        """
        with _waiting:
            if self._lost:
                return True
            if self._news is None:
                self._news = threading.Event()
            news = self._news
        return news.wait(timeout)

    def _lose(self) -> None:
        """The worker's call when the lease is gone."""
        with _waiting:
            self._lost = True
            if self._news is not None:
                self._news.set()

    def idempotency_key(self, name: str) -> str:
        """A key for one effect of this job on the outside world: a UUID, the same in every attempt.

        No other job has it, in this database or in another. It never contains the token: a retry with a new
        key would charge the customer again. A database restored from a dump has the same keys for the jobs
        that were in the dump.
        """
        if not name or len(name) > EFFECT_NAME_CHARS_MAX or not (name.isascii() and name.isprintable()):
            raise BadName(
                f"an idempotency key is made for a name of 1 to {EFFECT_NAME_CHARS_MAX} printable ASCII "
                f"characters, such as 'intent'; got {name[: EFFECT_NAME_CHARS_MAX + 1]!a}"
            )
        if self._key_seed is None or len(self._key_seed) != SEED_BYTES:
            raise FaultlineError(
                f"job {self.id} came without its key_seed, of which its idempotency keys are made; no key "
                "was made. Its row is damaged, or its server is older than this worker: upgrade it"
            )
        namespace = UUID(bytes=self._key_seed + self.id.to_bytes(8, "big", signed=True))
        return str(uuid5(namespace, name))

    def _settled_by(self, form: str) -> JobContext:
        if self._context is None:
            raise FaultlineError(
                f"{form} needs the worker that runs the job; this Job was made by hand. "
                "Run the handler in a worker; `faultline worker --until-empty` is one for tests"
            )
        return self._context

    @overload
    def complete_in(
        self, conn: "PlainConnection", result: Any = None, *, savepoint: bool = False
    ) -> None: ...
    @overload
    def complete_in(
        self, conn: "AwaitedConnection", result: Any = None, *, savepoint: bool = False
    ) -> Awaitable[None]: ...

    def complete_in(self, conn: Any, result: Any = None, *, savepoint: bool = False) -> Any:
        """Complete the job in your own transaction: its success commits with your rows, or not at all.

            with engine.begin() as conn:
                conn.execute(update(orders).where(orders.c.id == order_id).values(paid=True))
                job.complete_in(conn, result="paid")

        The connection is one of psycopg, a connection or session of SQLAlchemy, or `django.db.connection`;
        on an async one, also of asyncpg, it is awaited. If the lease is lost it raises `LeaseLost`, and the
        transaction can only roll back. Inside a savepoint it raises `InSavepoint`, unless `savepoint=True`.
        """
        return self._settled_by("job.complete_in()").complete_in(self, conn, result, savepoint=savepoint)

    @overload
    def fail_in(
        self,
        conn: "PlainConnection",
        error: BaseException | str,
        delay: timedelta | None = None,
        *,
        savepoint: bool = False,
    ) -> None: ...
    @overload
    def fail_in(
        self,
        conn: "AwaitedConnection",
        error: BaseException | str,
        delay: timedelta | None = None,
        *,
        savepoint: bool = False,
    ) -> Awaitable[None]: ...

    def fail_in(
        self,
        conn: Any,
        error: BaseException | str,
        delay: timedelta | None = None,
        *,
        savepoint: bool = False,
    ) -> Any:
        """Fail this attempt in your own transaction, and keep the rows that you wrote there.

        The job is tried again after `delay` (one second by default), or is dead when no attempt is left.
        """
        return self._settled_by("job.fail_in()").fail_in(self, conn, error, delay, savepoint=savepoint)

    @overload
    def snooze_in(
        self, conn: "PlainConnection", delay: timedelta, reason: str = "", *, savepoint: bool = False
    ) -> None: ...
    @overload
    def snooze_in(
        self, conn: "AwaitedConnection", delay: timedelta, reason: str = "", *, savepoint: bool = False
    ) -> Awaitable[None]: ...

    def snooze_in(self, conn: Any, delay: timedelta, reason: str = "", *, savepoint: bool = False) -> Any:
        """Put the job off in your own transaction, and keep your rows of it; no attempt is counted."""
        return self._settled_by("job.snooze_in()").snooze_in(self, conn, delay, reason, savepoint=savepoint)

    def complete(self, result: Any = None, isolation: "IsolationLevel | None" = None) -> CompletionBlock:
        """Commit the handler's rows, the job's success and its ledger entry together, or not at all.

        Use it with `with` in a plain handler and with `async with` in an async one:

            async with job.complete() as tx:
                await tx.execute("update orders set paid = true where id = %s", [order_id])
                tx.result = "paid"

        After the block the job is complete: return nothing else, and open no second block. If the lease was
        lost, everything rolls back and `LeaseLost` is raised at the block's end.
        """
        return self._settled_by("job.complete()").complete(self, result, isolation)

    def fenced(self, isolation: "IsolationLevel | None" = None) -> CompletionBlock:
        """Commit rows only while the lease is ours, and go on with the job.

            async with job.fenced() as tx:
                await tx.execute("insert into parts (job, part) values (%s, 1)", [job.id])

        A retry runs the block again: what it writes must bear that, or be keyed. If the lease was lost,
        everything rolls back and `LeaseLost` is raised at the block's end.
        """
        return self._settled_by("job.fenced()").fenced(self, isolation)

    def __repr__(self) -> str:
        return f"Job(id={self.id}, task={self.task!r}, attempt={self.attempt}, token={self.token})"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job as read back from the database: what `get` and `list` give.

    >>> from datetime import UTC
    >>> info = JobInfo(id=7, state=JobState.QUEUED, task="charge", queue="default",
    ...                max_attempts=10, run_at=datetime.now(UTC), created_at=datetime.now(UTC))
    >>> info.state.ended
    False
    """

    id: int
    state: JobState
    task: str
    queue: str
    max_attempts: int
    run_at: datetime
    created_at: datetime
    priority: int = 0
    args: Any = field(default_factory=dict)
    result: Any = None
    attempt: int = 0
    crashes: int = 0
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    finished_at: datetime | None = None
    worker: str | None = None
    token: int | None = None
    error: str | None = None
    key: str | None = None
    damage: str | None = None
    """The fault of its row, where it was changed around Faultline; nearly always None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One lease that ended: its token, its begin and end, and its outcome.

    >>> from datetime import UTC
    >>> moment = datetime(2026, 1, 1, tzinfo=UTC)
    >>> LedgerEntry(job_id=7, token=3, outcome="succeeded", settled_at=moment).token
    3
    """

    job_id: int
    token: int
    outcome: str
    settled_at: datetime
    attempt: int = 0
    worker: str | None = None
    claimed_at: datetime | None = None
    error: str | None = None
    task: str = ""
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A write that the fence refused: the record of a worker that came too late.

    >>> from datetime import UTC
    >>> moment = datetime(2026, 1, 1, tzinfo=UTC)
    >>> Refusal(job_id=7, token=3, current_token=5, reason="token_mismatch",
    ...         first_at=moment, last_at=moment).times
    1
    """

    job_id: int
    token: int
    reason: str
    first_at: datetime
    last_at: datetime
    worker: str | None = None
    current_token: int | None = None
    times: int = 1
