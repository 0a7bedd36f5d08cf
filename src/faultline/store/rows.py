"""Rows in; leases, jobs and ledger entries out."""

from typing import Any, NamedTuple

from faultline.job import JobInfo, JobState, LedgerEntry, Refusal
from faultline.store.call import Row


class Claimed(NamedTuple):
    """One job as a claim returns it, its args still text: they are decoded one by one, so a bad row harms only itself."""

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


class Reaped(NamedTuple):
    """A lease that ran out, and whether its job died of it."""

    job_id: int
    token: int
    worker: int | None
    task: str
    queue: str
    died: bool


def nothing(rows: list[Row]) -> None:
    """For verbs that say nothing when they succeed."""


def one(rows: list[Row]) -> Any:
    return rows[0][0]


def first(rows: list[Row]) -> Row:
    return rows[0]


def ids(rows: list[Row]) -> list[int]:
    return [row[0] for row in rows]


def claimed(rows: list[Row]) -> list[Claimed]:
    return [Claimed._make(row) for row in rows]


def answers(rows: list[Row]) -> list[Answer]:
    return [Answer._make(row) for row in rows]


def beats(rows: list[Row]) -> list[Beat]:
    return [Beat._make(row) for row in rows]


def reaped(rows: list[Row]) -> list[Reaped]:
    return [Reaped._make(row) for row in rows]


def queues(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in rows]


def job(row: Row) -> JobInfo:
    """A row of the view `jobs`, in its order of columns."""
    return JobInfo(
        id=row[0], state=JobState(row[1]), task=row[2], queue=row[3], priority=row[4], args=row[5], result=row[6],
        attempt=row[7], max_attempts=row[8], crashes=row[9], run_at=row[10], created_at=row[11], claimed_at=row[12],
        lease_until=row[13], finished_at=row[14], worker=row[15], token=row[16], error=row[17], key=row[18],
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
            settled_at=row[7], error=row[8],
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
