"""Rows in; leases, jobs and ledger entries out."""

from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final, NamedTuple

from faultline.job import JobInfo, JobState, LedgerEntry, Refusal
from faultline.store.call import Row


class Claimed(NamedTuple):
    """One job as a claim returns it, its args still text: decoded one by one, a bad row harms only itself."""

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
    """Who enqueued it, the claim before, this claim: trace contexts, a line each; mostly nobody traces it."""
    due_at: Any = None
    claimed_at: Any = None
    priority: int = 0
    key_seed: bytes | None = None
    """64 random bits of the job's own, the same in every attempt: its idempotency keys are made of them."""


LANE: Final = Claimed._fields.index("lane")
PLACE: Final = Claimed._fields.index("pos")

_STATES = frozenset(JobState)

_urgency = itemgetter(Claimed._fields.index("priority"), PLACE)


class Answer(NamedTuple):
    """What a batch verb says of a lease that did not get through."""

    job_id: int
    token: int
    answer: str
    reason: str | None
    current_token: int | None


class Beat(NamedTuple):
    """What a heartbeat says of one lease: held, busy, lost or cancel."""

    job_id: int
    token: int
    answer: str


class Done(NamedTuple):
    """What became of one job of several that something was to be done to."""

    id: int
    done: bool
    said: str | None
    queue: str | None
    """Where it is in line now, if it is."""


class Reaped(NamedTuple):
    """A lease that ran out, and whether its job died of it."""

    job_id: int
    token: int
    worker: int | None
    task: str
    queue: str
    died: bool


class QueueInfo(NamedTuple):
    """A queue as it stands: how many of its jobs are where, and the age of the first one that is due."""

    queue: str
    paused: bool
    keep: str
    due: int
    running: int
    scheduled: int
    dead: int
    lag_seconds: float | None


class Removed(NamedTuple):
    """What became of a queue that was to be removed, and what stood in the way."""

    queue: str
    removed: bool
    said: str | None


class WorkerInfo(NamedTuple):
    """A worker as it last said it was; ownership of jobs never depends on this."""

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


class Round(NamedTuple):
    """Whether the round is ours, and then what became of the clock and the server since the last."""

    mine: bool
    moment: datetime
    last_at: datetime | None
    stepped: timedelta | None
    """How far the clock was set back since the last round, below zero; None when it was not."""
    era_before: int | None
    era: int | None


class Vitals(NamedTuple):
    """What `doctor` found: facts only, the judging is done by whoever asked."""

    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    backend_pid: int
    moment: datetime
    oldest_transaction_seconds: float | None
    round_age_seconds: float | None
    ledger_strays: int
    jobs_in_two_places: int
    jobs_behind_the_floor: int
    silent_workers: int
    chores_age_seconds: float | None
    leader: str | None
    """The worker that leads the slow chores now."""


class Figure(NamedTuple):
    """One figure of the whole database: which, of what, how much."""

    name: str
    labels: list[str]
    value: float


class KeyInfo(NamedTuple):
    """An API key as people see it: everything but its hash."""

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
    """What a doorman judges a key by; `worn` when it is time to note that it is in use."""

    hash: bytes
    name: str
    scopes: list[str]
    queues: list[str] | None
    live: bool
    worn: bool


class Act(NamedTuple):
    """What somebody did: on whose behalf as they said, and as which role of the database."""

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
    """A group role of the database, and the logins that can reach it."""

    duty: str
    role: str
    is_there: bool
    logins: list[str]


class Outline(NamedTuple):
    """A job without what it worked on: for those who may see no payload."""

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


def nothing(rows: list[Row]) -> None:
    """For verbs that say nothing when they succeed."""


def one(rows: list[Row]) -> Any:
    return rows[0][0]


def is_so(rows: list[Row]) -> bool:
    """Whether the answer was yes; no answer is none."""
    return bool(rows and rows[0][0])


def first(rows: list[Row]) -> Row:
    return rows[0]


def maybe_first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def ids(rows: list[Row]) -> list[int]:
    return [row[0] for row in rows]


def made(rows: list[Row]) -> list[tuple[int, bool]]:
    """The ids of jobs that were asked for, and whether each is new: a key may name an older one."""
    return [(row[0], row[1]) for row in rows]


def column(rows: list[Row]) -> list[Any]:
    return [row[0] for row in rows]


def figures(rows: list[Row]) -> list[Figure]:
    return [Figure._make(row) for row in rows]


def in_line(rows: list[Row]) -> list[Row]:
    """What a claim gave, the urgent first, then in their line."""
    rows.sort(key=_urgency)
    return rows


def claimed(rows: list[Row]) -> list[Claimed]:
    return [Claimed._make(row) for row in in_line(rows)]


def answers(rows: list[Row]) -> list[Answer]:
    return [Answer._make(row) for row in rows]


def beats(rows: list[Row]) -> list[Beat]:
    return [Beat._make(row) for row in rows]


def done(rows: list[Row]) -> list[Done]:
    return [Done._make(row) for row in rows]


def reaped(rows: list[Row]) -> list[Reaped]:
    return [Reaped._make(row) for row in rows]


def a_round(rows: list[Row]) -> Round:
    return Round._make(rows[0])


def queues(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in rows]


def job(row: Row) -> JobInfo:
    """A row of the view `jobs`, in its order of columns."""
    state, damage = row[1], row[19]
    if state not in _STATES:  # an end that is none: the entry was written by hand
        state, damage = JobState.DEAD, "; ".join(filter(None, (damage, f"it ended as {state!a}")))
    return JobInfo(
        id=row[0], state=JobState(state), task=row[2] or "", queue=row[3], priority=row[4], args=row[5],
        result=row[6], attempt=row[7], max_attempts=row[8], crashes=row[9], run_at=row[10],
        created_at=row[11], claimed_at=row[12], lease_until=row[13], finished_at=row[14],
        worker=row[15], token=row[16], error=row[17], key=row[18], damage=damage,
    )  # fmt: skip


def jobs(rows: list[Row]) -> list[JobInfo]:
    return [job(row) for row in rows]


def maybe_job(rows: list[Row]) -> JobInfo | None:
    return job(rows[0]) if rows else None


def entries(rows: list[Row]) -> list[LedgerEntry]:
    """Rows of the view `entries`, in its order of columns."""
    return [
        LedgerEntry(
            job_id=row[0], token=row[1], outcome=row[2], attempt=row[3], worker=row[5], claimed_at=row[6],
            settled_at=row[7], error=row[8], task=row[9], queue=row[10],
        )
        for row in rows
    ]  # fmt: skip


def refusals(rows: list[Row]) -> list[Refusal]:
    """Rows of the view `refused_writes`, in its order of columns."""
    return [
        Refusal(
            job_id=row[0], token=row[1], worker=row[3], reason=row[4], current_token=row[5],
            first_at=row[6], last_at=row[7], times=row[8],
        )
        for row in rows
    ]  # fmt: skip


def queue_infos(rows: list[Row]) -> list[QueueInfo]:
    return [QueueInfo._make(row) for row in rows]


def removed(rows: list[Row]) -> list[Removed]:
    return [Removed._make(row) for row in rows]


def worker_infos(rows: list[Row]) -> list[WorkerInfo]:
    return [WorkerInfo._make(row) for row in rows]


def vitals(rows: list[Row]) -> Vitals:
    return Vitals._make(rows[0])


def key_infos(rows: list[Row]) -> list[KeyInfo]:
    return [KeyInfo._make(row) for row in rows]


def key_info(rows: list[Row]) -> KeyInfo:
    return KeyInfo._make(rows[0])


def found_key(rows: list[Row]) -> FoundKey | None:
    return FoundKey._make(rows[0]) if rows else None


def acts(rows: list[Row]) -> list[Act]:
    return [Act._make(row) for row in rows]


def groups(rows: list[Row]) -> list[GroupRole]:
    return [GroupRole._make(row) for row in rows]


def maybe_outline(rows: list[Row]) -> Outline | None:
    return Outline._make(rows[0]) if rows else None


def words(rows: list[Row]) -> list[str]:
    return [row[0] for row in rows]
