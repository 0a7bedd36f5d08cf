"""Calls of sql/functions/reads: what is read and changes nothing."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from faultline.job import JobInfo, LedgerEntry, Refusal
from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import (
    DoctorFacts,
    MetricRow,
    Outline,
    WorkerInfo,
)


def metrics() -> Call[list[MetricRow]]:
    return Call("metrics", {}, read=readers.figures)


def count_dead(
    queue: str | None = None, task: str | None = None, died_after: datetime | None = None
) -> Call[int]:
    return Call("count_dead", {"queue": queue, "task": task, "died_after": died_after}, read=readers.one)


def get(job_id: int) -> Call[JobInfo | None]:
    return Call("get_job", {"job_id": job_id}, read=readers.maybe_job)


def get_confirmed(job_id: int) -> Call[JobInfo | None]:
    """The same for a client that waits for the job's end: the end is durable before it is returned."""
    return Call("get_job", {"job_id": job_id, "confirmed": True}, read=readers.maybe_job)


def get_unread(job_id: int, *, confirmed: bool = False) -> Call[JobInfo | None]:
    """The same with args and result as JSON text, for callers that only pass them on."""
    asked = {"job_id": job_id, "confirmed": confirmed}
    return Call("get_job", asked, read=readers.maybe_job, raw_documents=True)


def outline(job_id: int) -> Call[Outline | None]:
    """The job without its payload, for a role that is neither an operator nor a server."""
    return Call("get_outline", {"job_id": job_id}, read=readers.maybe_outline)


def queues_of(ids: Sequence[int]) -> Call[dict[int, str]]:
    """The queue of each of these jobs that exists."""
    return Call("queues_of", {"ids": ArrayParam(ids, "bigint")}, read=dict)


def list_jobs(
    state: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    before: int | None = None,
    most: int = 50,
) -> Call[list[JobInfo]]:
    args = {"state": state, "queue": queue, "task": task, "before": before, "most": most}
    return Call("list_jobs", args, read=readers.jobs)


def find_jobs(
    states: Sequence[str] | None = None,
    queues: Sequence[str] | None = None,
    task: str | None = None,
    key: str | None = None,
    before: int | None = None,
    most: int = 50,
) -> Call[list[JobInfo]]:
    """Without args and results, so that a page stays small."""
    args = {**_filter(states, queues, task), "key": key, "before": before, "most": most}
    return Call("find_jobs", args, read=readers.jobs)


def count_jobs(
    states: Sequence[str] | None = None,
    queues: Sequence[str] | None = None,
    task: str | None = None,
    most: int = 10_001,
) -> Call[int]:
    return Call("count_jobs", {**_filter(states, queues, task), "most": most}, read=readers.one)


def _filter(states: Sequence[str] | None, queues: Sequence[str] | None, task: str | None) -> dict[str, Any]:
    return {
        "states": None if states is None else ArrayParam(list(states), "text"),
        "queues": None if queues is None else ArrayParam(list(queues), "text"),
        "task": task,
    }


def ended(ids: Sequence[int]) -> Call[list[int]]:
    return Call("ended", {"ids": ArrayParam(list(ids), "bigint")}, read=readers.ids)


def changes(since: datetime | None = None, most: int = 1_000) -> Call[list[LedgerEntry]]:
    return Call("changes", {"since": since, "most": most}, read=readers.entries)


HISTORY_MAX: Final = 1_000
"""The leases of a job that are read at once."""


def history(job_id: int, before: int | None = None, most: int = HISTORY_MAX) -> Call[list[LedgerEntry]]:
    """How the last leases of a job ended, oldest first; with `before`, the leases before that token."""
    return Call("history", {"job_id": job_id, "before": before, "most": most}, read=readers.entries)


def refusals(job_id: int | None = None, most: int = 50) -> Call[list[Refusal]]:
    return Call("list_refusals", {"job_id": job_id, "most": most}, read=readers.refusals)


def ledger(most: int = 50) -> Call[list[LedgerEntry]]:
    return Call("list_entries", {"most": most}, read=readers.entries)


def list_workers(
    gone: bool = False, most: int = 100, queues: Collection[str] | None = None
) -> Call[list[WorkerInfo]]:
    """With `queues`, only the workers that serve one of them, with their queues and jobs among these."""
    args: dict[str, Any] = {"gone": gone, "most": most}
    if queues is not None:
        args["only_queues"] = ArrayParam(sorted(queues), "text")
    return Call("list_workers", args, read=readers.worker_infos)


def health() -> Call[tuple[Any, ...]]:
    return Call("health", {}, read=readers.first)


def doctor() -> Call[DoctorFacts]:
    return Call("doctor", {}, read=readers.vitals)
