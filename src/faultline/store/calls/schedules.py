"""Calls of sql/functions/schedules."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from faultline.schedules import BackfilledOccurrence, Occurrence, ScheduleInfo
from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import DueSchedule, FiredSchedule, SyncedSchedule


def sync_schedules(
    app: str, release: Sequence[int], specs: Sequence[dict[str, Any]], worker: int | None = None
) -> Call[list[SyncedSchedule]]:
    args = {
        "app": app, "release": ArrayParam(list(release), "bigint"), "specs": json.dumps(specs),
        "worker": worker,
    }  # fmt: skip
    return Call("sync_schedules", args, read=readers.synced_schedules)


def set_schedule(spec: dict[str, Any]) -> Call[tuple[str, int, datetime | None, datetime]]:
    """The state, the revision, the next time and the database's time."""
    args = {**spec, "retry": None if "retry" not in spec else json.dumps(spec["retry"])}
    return Call("set_schedule", args, read=readers.first)


def delete_schedule(name: str, reason: str | None = None) -> Call[None]:
    return Call("delete_schedule", {"name": name, "reason": reason}, read=readers.nothing)


def pause_schedule(name: str, reason: str | None = None) -> Call[None]:
    return Call("pause_schedule", {"name": name, "reason": reason}, read=readers.nothing)


def resume_schedule(name: str, reason: str | None = None) -> Call[None]:
    return Call("resume_schedule", {"name": name, "reason": reason}, read=readers.nothing)


def trigger_schedule(name: str, reason: str | None = None) -> Call[tuple[Any, ...]]:
    """The job's id, its queue and the moment."""
    return Call("trigger_schedule", {"name": name, "reason": reason}, read=readers.first)


def backfill(
    name: str, revision: int, occurrences: Sequence[datetime], *, preview: bool, reason: str | None = None
) -> Call[list[BackfilledOccurrence]]:
    args = {
        "name": name, "revision": revision, "occurrences": json.dumps([at.isoformat() for at in occurrences]),
        "preview": preview, "reason": reason,
    }  # fmt: skip
    return Call("backfill", args, read=readers.backfilled)


def list_schedules(
    name: str | None = None, after: str | None = None, most: int = 100, queues: Sequence[str] | None = None
) -> Call[list[ScheduleInfo]]:
    args = {
        "schedule": name, "after": after, "most": most,
        "queues": None if queues is None else ArrayParam(list(queues), "text"),
    }  # fmt: skip
    return Call("list_schedules", args, read=readers.schedules)


def list_occurrences(
    schedule: str, earlier_than: datetime | None = None, most: int = 50
) -> Call[list[Occurrence]]:
    args = {"name": schedule, "before": earlier_than, "most": most}
    return Call("list_occurrences", args, read=readers.occurrences)


def occurrence_of(job_id: int) -> Call[list[Occurrence]]:
    """The occurrence that a job was made for; empty for a job of no schedule."""
    return Call("occurrence_of", {"job": job_id}, read=readers.occurrences)


def due_schedules(ahead: timedelta = timedelta(seconds=1), most: int = 500) -> Call[list[DueSchedule]]:
    return Call("due_schedules", {"ahead": ahead, "most": most}, read=readers.due_schedules)


def fire(firings: Sequence[dict[str, Any]]) -> Call[list[FiredSchedule]]:
    return Call("fire", {"firings": json.dumps(firings)}, read=readers.fired)


def compute_next(computed: Sequence[dict[str, Any]]) -> Call[int]:
    return Call("compute_next", {"computed": json.dumps(computed)}, read=readers.one)


def hold_schedule(name: str, revision: int, error: str) -> Call[None]:
    args = {"name": name, "revision": revision, "error": error}
    return Call("hold_schedule", args, read=readers.nothing)


def pause_absent() -> Call[list[tuple[str, str]]]:
    """The schedules, each with its app."""
    return Call("pause_absent", {}, read=readers.pairs)


def prune_occurrences(most: int = 1000) -> Call[int]:
    return Call("prune_occurrences", {"most": most}, read=readers.one)
