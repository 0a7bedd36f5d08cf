"""Calls of sql/functions/jobs: what producers and operators do with jobs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import msgspec

from faultline.job import NewJob
from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver import notifications
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import (
    BulkResult,
    EnqueuedRow,
    MadeJob,
)

KEY_KEPT_FOR = timedelta(days=1)

TEXT_BYTES_MIN: Final = 65_536
"""Longer args go through enqueue_many, which takes text: as jsonb they take a backend over 100 MB."""


def _asked(new: NewJob) -> dict[str, Any]:
    """The arguments that the jobs of a batch share, without those that have the function's default."""
    shared: dict[str, Any] = {"task": new.task, "queue": new.queue, "max_attempts": new.max_attempts}
    for name in (
        "priority",
        "run_at",
        "delay",
        "lease_for",
        "timeout",
        "retry",
        "trace",
        "key_rule",
        "expires_at",
        "expires_in",
    ):
        value = getattr(new, name)
        # A zero duration is sent (it is not the number 0): the server refuses a lease of 0 s.
        if value is not None and value != 0:
            shared[name] = value
    if new.limit is not None:
        shared["limit_name"] = new.limit
    return shared


def _kept_for(new: NewJob) -> timedelta:
    return KEY_KEPT_FOR if new.key_for is None else new.key_for


def enqueue(new: NewJob) -> Call[int]:
    if new.args and len(new.args) > TEXT_BYTES_MIN:
        many = enqueue_many([new])
        return Call(many.name, many.args, read=readers.one)
    keyed = {} if new.key is None else {"key": new.key, "key_for": _kept_for(new)}
    if new.limit_key is not None:
        keyed["limit_key"] = new.limit_key
    return Call("enqueue", {**_asked(new), "args": new.args, **keyed}, read=readers.one)


def enqueue_one(new: NewJob) -> Call[MadeJob]:
    """As `enqueue`; the answer says, too, whether the job is new."""
    if new.key is None and new.key_rule is None:
        alone = enqueue(new)
        return Call(alone.name, alone.args, read=readers.made_new)
    many = enqueue_many([new])
    return Call(many.name, many.args, read=readers.made_one)


def enqueue_many(batch: Sequence[NewJob], trace: str | None = None) -> Call[list[int]]:
    """For jobs that share everything but args and key; `trace` is the default for jobs without one."""
    args: dict[str, Any] = {**_asked(batch[0]), "args": ArrayParam([new.args for new in batch], "text")}
    if trace is not None:
        args.setdefault("trace", trace)
    if any(new.key is not None for new in batch):
        args |= {"keys": ArrayParam([new.key for new in batch], "text"), "key_for": _kept_for(batch[0])}
    if any(new.limit_key is not None for new in batch):
        args["limit_keys"] = ArrayParam([new.limit_key for new in batch], "text")
    return Call("enqueue_many", args, read=readers.ids)


OPTIONS: Final = (
    "task", "queue", "priority", "run_at", "delay", "max_attempts", "lease_for", "timeout", "retry",
    "key_for", "key_rule", "expires_at", "expires_in", "limit",
)  # fmt: skip
"""What the jobs of a kind share; each job has its own args, trace, key and limit_key."""

_SENT_AS: Final = {"limit": "limit_name"}  # LIMIT is a word of SQL

kind_of: Final = attrgetter(*OPTIONS)


@lru_cache(maxsize=512)
def _kind(*options: Any) -> str:
    """The options of a kind as JSON, without those that have the function's default."""
    told = {
        _SENT_AS.get(name, name): _interval(value) if isinstance(value, timedelta) else value
        for name, value in zip(OPTIONS, options, strict=True)
        if value is not None
    }
    return msgspec.json.encode(told).decode()


def _interval(duration: timedelta) -> str:
    return f"{duration.days} days {duration.seconds} seconds {duration.microseconds} microseconds"


def enqueue_each(jobs: Sequence[NewJob]) -> Call[list[EnqueuedRow]]:
    """For jobs of any kinds, which share nothing but the call and its commit."""
    kinds: dict[Any, int] = {}
    numbers = [kinds.setdefault(kind_of(new), len(kinds) + 1) for new in jobs]
    args: dict[str, Any] = {
        "kinds": f"[{','.join([_kind(*options) for options in kinds])}]",
        "kind_of": ArrayParam(numbers, "bigint"),
        "args": ArrayParam([new.args for new in jobs], "text"),
    }
    if any(new.trace is not None for new in jobs):
        args["traces"] = ArrayParam([new.trace for new in jobs], "text")
    if any(new.key is not None for new in jobs):
        args["keys"] = ArrayParam([new.key for new in jobs], "text")
    if any(new.limit_key is not None for new in jobs):
        args["limit_keys"] = ArrayParam([new.limit_key for new in jobs], "text")
    return Call("enqueue_each", args, read=readers.enqueued)


def telling_which_are_new(call: Call[list[int]]) -> Call[list[tuple[int, bool]]]:
    """The same `enqueue_many`; it returns each id and whether its job is new."""
    return Call(call.name, call.args, read=readers.made)


def wake(queue: str) -> Call[None]:
    return Call("wake", {"queue": queue}, read=readers.nothing)


def wake_each(queues: Sequence[str]) -> Call[None]:
    return Call("wake_each", {"queues": ArrayParam(queues, "text")}, read=readers.nothing)


def wake_cancelled(job_ids: Sequence[int]) -> Call[None]:
    """Tell the workers of these jobs that they were cancelled: a hint; their heartbeats report it too."""
    return Call("wake", {"queue": notifications.cancelled_message(job_ids)}, read=readers.nothing)


def cancel(job_id: int, reason: str | None = None) -> Call[None]:
    return Call("cancel", {"job_id": job_id, "reason": reason}, read=readers.nothing)


def retry_now(job_id: int) -> Call[str]:
    return Call("retry_now", {"job_id": job_id}, read=readers.one)


def replay(job_id: int) -> Call[str]:
    return Call("replay", {"job_id": job_id}, read=readers.one)


def replay_many(
    queue: str | None = None, task: str | None = None, died_after: datetime | None = None, most: int = 1000
) -> Call[list[int]]:
    args = {"queue": queue, "task": task, "died_after": died_after, "most": most}
    return Call("replay_many", args, read=readers.ids)


def for_each(verb: str, ids: Sequence[int], reason: str | None = None) -> Call[list[BulkResult]]:
    args = {"verb": verb, "ids": ArrayParam(list(ids), "bigint"), "reason": reason}
    return Call("for_each", args, read=readers.done)
