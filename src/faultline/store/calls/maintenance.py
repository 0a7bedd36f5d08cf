"""Calls of sql/functions/maintenance and sql/functions/queues: the upkeep of a database, and its queues."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import (
    ExpiredJob,
    QueueInfo,
    Reaped,
    RemovedQueue,
    Round,
    UnknownJobs,
)


def database_identity() -> Call[str]:
    """Which database a connection is to; compared with the one that a lease is from."""
    return Call("database_identity", {}, read=readers.one)


def newest_place() -> Call[int]:
    return Call("newest_place", {}, read=readers.one)


def round_(tick: timedelta) -> Call[bool]:
    """Whether this caller makes the round."""
    return Call("round", {"tick": tick}, read=readers.one)


def make_round(tick: timedelta) -> Call[Round]:
    """The same, with all that the round noticed."""
    return Call("round", {"tick": tick}, read=readers.a_round)


def reap(most: int = 500) -> Call[list[Reaped]]:
    return Call("reap", {"most": most}, read=readers.reaped)


def expire(most: int = 500) -> Call[list[ExpiredJob]]:
    return Call("expire", {"most": most}, read=readers.expired_jobs)


def promote(most: int = 500) -> Call[list[tuple[str, int]]]:
    return Call("promote", {"most": most}, read=readers.queues)


def next_due() -> Call[float | None]:
    return Call("next_due", {}, read=readers.one)


def unknown_tasks() -> Call[list[UnknownJobs]]:
    """Mark due jobs that no running worker of their queue knows; those marked for a day are dead."""
    return Call("unknown_tasks", {}, read=readers.unknown_jobs)


def first_free() -> Call[list[tuple[str, int]]]:
    return Call("first_free", {}, read=readers.queues)


def backlog(queue: str | None = None, most: int = 10_000) -> Call[int]:
    return Call("backlog", {"queue": queue, "most": most}, read=readers.one)


def rescue(most: int = 500) -> Call[list[int]]:
    return Call("rescue", {"most": most}, read=readers.ids)


def quarantine(most: int = 500) -> Call[list[int]]:
    return Call("quarantine", {"most": most}, read=readers.ids)


def floors() -> Call[int]:
    return Call("floors", {}, read=readers.one)


def quiet_lanes() -> Call[int]:
    return Call("quiet_lanes", {}, read=readers.one)


def lead(worker: int, lead_for: timedelta = timedelta(seconds=10)) -> Call[bool]:
    return Call("lead", {"worker": worker, "lead_for": lead_for}, read=readers.one)


def partitions() -> Call[int]:
    return Call("partitions", {}, read=readers.one)


def drop_partitions() -> Call[int]:
    return Call("drop_partitions", {}, read=readers.one)


def prune(most: int = 1000) -> Call[tuple[Any, ...]]:
    return Call("prune", {"most": most}, read=readers.first)


def list_queues(name: str | None = None) -> Call[list[QueueInfo]]:
    """Every queue, or the one of this name."""
    return Call("list_queues", {} if name is None else {"name": name}, read=readers.queue_infos)


def wal_written() -> Call[int]:
    return Call("wal_written", {}, read=readers.one)


def pause(queue: str) -> Call[None]:
    return Call("pause", {"queue": queue}, read=readers.nothing)


def resume(queue: str) -> Call[None]:
    return Call("resume", {"queue": queue}, read=readers.nothing)


def configure_queue(
    queue: str, max_depth: int | None = None, age_after: timedelta | None = None
) -> Call[None]:
    """None leaves a value as it is, zero takes it away."""
    args = {"queue": queue, "max_depth": max_depth, "age_after": age_after}
    return Call("configure_queue", args, read=readers.nothing)


def mark_full() -> Call[int]:
    """Mark the queues that hold as many due jobs as they may, for enqueues."""
    return Call("mark_full", {}, read=readers.one)


def set_retention(queue: str, what: str) -> Call[None]:
    return Call("set_retention", {"queue": queue, "what": what}, read=readers.nothing)


def remove_queues(queues: Sequence[str]) -> Call[list[RemovedQueue]]:
    return Call("remove_queues", {"queues": ArrayParam(list(queues), "text")}, read=readers.removed)


def configure(
    default_lease: timedelta | None = None,
    ledger_retention: timedelta | None = None,
    dead_retention: timedelta | None = None,
    acts_retention: timedelta | None = None,
) -> Call[None]:
    args = {
        "default_lease": default_lease,
        "ledger_retention": ledger_retention,
        "dead_retention": dead_retention,
        "acts_retention": acts_retention,
    }
    return Call("configure", args, read=readers.nothing)
