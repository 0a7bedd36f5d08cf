"""The rows of replies by name: what the database answers, before it is a lease, a job or a ledger entry."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple


class ClaimedRow(NamedTuple):
    """One job of a claim. Its args are still text: they are decoded singly, so a bad row harms no other."""

    id: int
    token: int
    attempt: int
    max_attempts: int
    crashes: int
    task: str
    queue: str
    args: str
    key: str | None
    created_at: Any
    lease_for: Any
    timeout: Any
    retry: str | None
    lane: int
    pos: int
    trace: str | None = None
    """Trace contexts of the enqueue, the claim before and this claim, one per line; mostly None."""
    due_at: Any = None
    claimed_at: Any = None
    priority: int = 0
    key_seed: bytes | None = None
    """64 random bits, the same in every attempt of the job: its idempotency keys are made of them."""
    gate: int | None = None
    """The gate of its limit at which it waited: the next job there goes on when it ends."""


AT: Final[Any] = ClaimedRow._make(range(len(ClaimedRow._fields)))
"""The position of each field in the plain row of a claim: `row[AT.queue]`."""


class SettleRefusal(NamedTuple):
    """The answer of a batch call for a lease that was not settled."""

    job_id: int
    token: int
    answer: str
    reason: str | None
    current_token: int | None


class HeartbeatResult(NamedTuple):
    """The answer of a heartbeat for one lease: held, busy, lost or cancel."""

    job_id: int
    token: int
    answer: str


class BulkResult(NamedTuple):
    """The result of a bulk call for one of its jobs."""

    id: int
    done: bool
    said: str | None
    queue: str | None
    """The queue in which the job waits now, if it waits."""


class EnqueuedRow(NamedTuple):
    """The answer of `enqueue_each` for one job: `made`, `found`, and without an id `conflict`, `new_lane`."""

    id: int | None
    state: str

    @property
    def is_new(self) -> bool:
        return self.state == "made"


class MadeJob(NamedTuple):
    """The job of an enqueue, and whether it is new: a key may name an older one."""

    id: int
    is_new: bool


class ExpiredJob(NamedTuple):
    """A job that ended because no worker claimed it in time."""

    id: int
    task: str
    queue: str


class Reaped(NamedTuple):
    """An expired lease, and whether its job is dead now."""

    job_id: int
    token: int
    worker: int | None
    task: str
    queue: str
    died: bool


class QueueInfo(NamedTuple):
    """A queue with its number of jobs in each state, and the age of its first due job."""

    queue: str
    paused: bool
    keep: str
    due: int
    running: int
    scheduled: int
    dead: int
    lag_seconds: float | None
    max_depth: int | None = None
    full: bool = False
    age_after_seconds: float | None = None


class LimitInfo(NamedTuple):
    """A limit: its bounds, the tasks tied to it, and how many jobs hold a slot and wait for one."""

    name: str
    per_key: int | None
    total: int | None
    rate: float | None
    """Starts a second."""
    burst: int | None
    on_retry: str
    parent: str | None
    tasks: list[str]
    queues: list[str]
    """Those in which jobs of it have been."""
    held: int
    """Counted up to 10,000, as `waiting` is."""
    waiting: int
    tokens: int | None
    """Starts that its rate allows now."""


class GateInfo(NamedTuple):
    """A key of a limit, with its jobs that hold a slot and that wait for one."""

    gate: int
    """The hash of the key."""
    key: str | None
    """As the args of its first job have it."""
    held: int
    waiting: int
    first_job: int


class WaitsFor(NamedTuple):
    """What a job waits for at the gate of its limit."""

    limit: str
    per_key: int | None
    total: int | None
    rate: float | None
    held_of_key: int
    held: int
    before: int
    """Jobs of its key that come first."""
    tokens: int | None


class RemovedQueue(NamedTuple):
    """The result of the removal of one queue, with the reason if it was refused."""

    queue: str
    removed: bool
    said: str | None


class WorkerInfo(NamedTuple):
    """A worker as it last reported itself; ownership of jobs never depends on this."""

    id: int
    name: str
    host: str
    pid: int
    queues: list[str]
    jobs_max: int
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    running: int
    silent: bool
    tasks: list[str] | None
    """The tasks that it knows; None where it named none, and takes jobs of every task."""


class Round(NamedTuple):
    """Whether this caller makes the round, and how the clock and the server changed since the last one."""

    mine: bool
    moment: datetime
    last_at: datetime | None
    stepped: timedelta | None
    """How far the clock was set back since the last round, as a negative value; None if it was not."""
    era_before: int | None
    era: int | None
    neglected: bool = False
    """Another caller makes the rounds, but the last one with a reap is long ago."""


class DoctorFacts(NamedTuple):
    """The facts that `doctor` found; the caller judges them."""

    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    backend_pid: int
    moment: datetime
    oldest_transaction_seconds: float | None
    """0 if none is open; None if this role cannot see the transactions of others."""
    round_age_seconds: float | None
    ledger_strays: int
    jobs_in_two_places: int
    jobs_behind_the_floor: int
    silent_workers: int
    chores_age_seconds: float | None
    leader: str | None
    """The worker that leads the slow chores now."""
    unknown_jobs: int
    """Due jobs of tasks that no running worker of their queue knows."""
    unknown_tasks: list[str]
    """Their tasks, each with its queue; ten at most."""
    failing_schedules: int = 0
    """Schedules whose next time cannot be computed, or that cannot be fired."""
    failing_names: Sequence[str] = ()
    late_schedules: int = 0
    """Schedules that have been due for over a minute: no watchdog fires them."""
    late_names: Sequence[str] = ()


class UnknownJobs(NamedTuple):
    """Due jobs of one task in one queue that no running worker there knows."""

    queue: str
    task: str
    jobs: int
    seconds: float
    died: int
    elsewhere: list[str]
    """Running workers that know the task, and serve other queues."""
    other_queues: list[str]
    gone: list[str]
    """Workers of this queue that knew the task; the last that was seen comes first."""


class DueSchedule(NamedTuple):
    """A schedule that is due, or soon will be, or whose next time is to be computed."""

    name: str
    revision: int
    next_at: datetime | None
    last_at: datetime | None
    cron: str | None
    time_zone: str | None
    every: timedelta | None
    at: datetime | None
    starts_at: datetime
    missed: str
    ready_at: datetime
    """When it may be fired: later than `next_at` after a failure."""
    moment: datetime
    """The database's time of this answer."""


class FiredSchedule(NamedTuple):
    """A schedule that was fired, or that is busy: the job before it could not be cancelled now."""

    name: str
    state: str
    jobs: int
    skipped: int
    queue: str
    cancelled: list[int]


class SyncedSchedule(NamedTuple):
    """What became of a schedule of an app's code: new, changed, same, foreign (`said`: whose), refused.

    `older`, without a name: a higher release has synced before, and nothing changed.
    """

    name: str | None
    state: str
    said: str | None


class MetricRow(NamedTuple):
    """One figure of the whole database: its name, labels and value."""

    name: str
    labels: list[str]
    value: float


class KeyInfo(NamedTuple):
    """An API key without its hash."""

    id: str
    name: str
    scopes: list[str]
    queues: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    live: bool


class FoundKey(NamedTuple):
    """The data for the check of a key; `worn` if its use has to be noted again."""

    hash: bytes
    name: str
    scopes: list[str]
    queues: list[str] | None
    live: bool
    worn: bool


class AuditedAct(NamedTuple):
    """A recorded act: the actor that the caller named, the database role, and what was done."""

    id: int
    at: datetime
    actor: str
    role: str
    verb: str
    job_id: int | None
    queue: str | None
    detail: dict[str, Any] | None
    reason: str | None


class GroupRole(NamedTuple):
    """A group role of the database, and the logins that can use it."""

    duty: str
    role: str
    is_there: bool
    logins: list[str]


class Outline(NamedTuple):
    """A job without its payload, for roles that may not see one."""

    id: int
    state: str
    task: str
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    crashes: int
    run_at: datetime
    created_at: datetime
    claimed_at: datetime | None
    lease_until: datetime | None
    finished_at: datetime | None
    worker: str | None
    token: int
