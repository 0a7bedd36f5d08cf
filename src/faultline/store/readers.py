"""Readers of replies: rows in; rows by name, jobs, ledger entries out."""

from operator import itemgetter
from typing import Any

from faultline.job import JobInfo, JobState, LedgerEntry, Refusal
from faultline.schedules import BackfilledOccurrence, Occurrence, ScheduleInfo
from faultline.store.call import Row
from faultline.store.rows import (
    AT,
    AuditedAct,
    BulkResult,
    ClaimedRow,
    DoctorFacts,
    DueSchedule,
    EnqueuedRow,
    ExpiredJob,
    FiredSchedule,
    FoundKey,
    GateInfo,
    GroupRole,
    HeartbeatResult,
    KeyInfo,
    LimitInfo,
    MadeJob,
    MetricRow,
    Outline,
    QueueInfo,
    Reaped,
    RemovedQueue,
    Round,
    SettleRefusal,
    SyncedSchedule,
    UnknownJobs,
    WaitsFor,
    WorkerInfo,
)

_STATES = frozenset(JobState)

_urgency = itemgetter(AT.priority, AT.pos)


def nothing(rows: list[Row]) -> None:
    """For functions that return nothing."""


def one(rows: list[Row]) -> Any:
    return rows[0][0]


def is_so(rows: list[Row]) -> bool:
    """Whether the answer is true; no row counts as false."""
    return bool(rows and rows[0][0])


def first(rows: list[Row]) -> Row:
    return rows[0]


def maybe_first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def ids(rows: list[Row]) -> list[int]:
    return [row[0] for row in rows]


def made(rows: list[Row]) -> list[tuple[int, bool]]:
    """The ids of enqueued jobs, and whether each job is new: a key may name an older one."""
    return [(row[0], row[1]) for row in rows]


def made_one(rows: list[Row]) -> MadeJob:
    return MadeJob(*rows[0])


def made_new(rows: list[Row]) -> MadeJob:
    """The answer of `enqueue` for a job without a key, which is always new."""
    return MadeJob(rows[0][0], True)


def enqueued(rows: list[Row]) -> list[EnqueuedRow]:
    return list(map(EnqueuedRow._make, rows))


def column(rows: list[Row]) -> list[Any]:
    return [row[0] for row in rows]


def figures(rows: list[Row]) -> list[MetricRow]:
    return [MetricRow._make(row) for row in rows]


def in_line(rows: list[Row]) -> list[Row]:
    """The rows of a claim, by priority and then by place."""
    rows.sort(key=_urgency)
    return rows


def claimed(rows: list[Row]) -> list[ClaimedRow]:
    return [ClaimedRow._make(row) for row in in_line(rows)]


def answers(rows: list[Row]) -> list[SettleRefusal]:
    return [SettleRefusal._make(row) for row in rows]


def beats(rows: list[Row]) -> list[HeartbeatResult]:
    return [HeartbeatResult._make(row) for row in rows]


def done(rows: list[Row]) -> list[BulkResult]:
    return [BulkResult._make(row) for row in rows]


def reaped(rows: list[Row]) -> list[Reaped]:
    return [Reaped._make(row) for row in rows]


def expired_jobs(rows: list[Row]) -> list[ExpiredJob]:
    return [ExpiredJob._make(row) for row in rows]


def a_round(rows: list[Row]) -> Round:
    return Round._make(rows[0])


def queues(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in rows]


def schedules(rows: list[Row]) -> list[ScheduleInfo]:
    return [ScheduleInfo._make(row) for row in rows]


def occurrences(rows: list[Row]) -> list[Occurrence]:
    return [Occurrence._make(row) for row in rows]


def backfilled(rows: list[Row]) -> list[BackfilledOccurrence]:
    return [BackfilledOccurrence._make(row) for row in rows]


def due_schedules(rows: list[Row]) -> list[DueSchedule]:
    return [DueSchedule._make(row) for row in rows]


def fired(rows: list[Row]) -> list[FiredSchedule]:
    return [FiredSchedule._make(row) for row in rows]


def synced_schedules(rows: list[Row]) -> list[SyncedSchedule]:
    return [SyncedSchedule._make(row) for row in rows]


def pairs(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows]


def job(row: Row) -> JobInfo:
    """A row of the view `jobs`, in its order of columns."""
    state, damage = row[1], row[19]
    if state not in _STATES:  # an unknown end: the entry was written by hand
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


def limits(rows: list[Row]) -> list[LimitInfo]:
    return [LimitInfo._make(row) for row in rows]


def gates(rows: list[Row]) -> list[GateInfo]:
    return [GateInfo._make(row) for row in rows]


def maybe_waits(rows: list[Row]) -> WaitsFor | None:
    return WaitsFor._make(rows[0]) if rows else None


def removed(rows: list[Row]) -> list[RemovedQueue]:
    return [RemovedQueue._make(row) for row in rows]


def worker_infos(rows: list[Row]) -> list[WorkerInfo]:
    return [WorkerInfo._make(row) for row in rows]


def unknown_jobs(rows: list[Row]) -> list[UnknownJobs]:
    return [UnknownJobs._make(row) for row in rows]


def vitals(rows: list[Row]) -> DoctorFacts:
    return DoctorFacts._make(rows[0])


def key_infos(rows: list[Row]) -> list[KeyInfo]:
    return [KeyInfo._make(row) for row in rows]


def key_info(rows: list[Row]) -> KeyInfo:
    return KeyInfo._make(rows[0])


def found_keys(rows: list[Row]) -> dict[str, FoundKey]:
    return {row[0]: FoundKey._make(row[1:]) for row in rows}


def acts(rows: list[Row]) -> list[AuditedAct]:
    return [AuditedAct._make(row) for row in rows]


def groups(rows: list[Row]) -> list[GroupRole]:
    return [GroupRole._make(row) for row in rows]


def maybe_outline(rows: list[Row]) -> Outline | None:
    return Outline._make(rows[0]) if rows else None


def words(rows: list[Row]) -> list[str]:
    return [row[0] for row in rows]
