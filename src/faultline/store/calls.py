"""One Python function for each SQL function: arguments in, Call out."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import msgspec

from faultline.job import JobInfo, LedgerEntry, NewJob, Refusal
from faultline.lease import Held, Lease
from faultline.store import rows
from faultline.store.call import Call
from faultline.store.driver import notifications
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import (
    AuditedAct,
    BulkResult,
    ClaimedRow,
    DoctorFacts,
    EnqueuedRow,
    FoundKey,
    GroupRole,
    HeartbeatResult,
    KeyInfo,
    MetricRow,
    Outline,
    QueueInfo,
    Reaped,
    RemovedQueue,
    Round,
    SettleRefusal,
    UnknownJobs,
    WorkerInfo,
)

KEY_KEPT_FOR = timedelta(days=1)

TEXT_BYTES_MIN: Final = 65_536
"""Longer args go through enqueue_many, which takes text: as jsonb they take a backend over 100 MB."""


def _asked(new: NewJob) -> dict[str, Any]:
    """The arguments that the jobs of a batch share, without those that have the function's default."""
    shared: dict[str, Any] = {"task": new.task, "queue": new.queue, "max_attempts": new.max_attempts}
    for name in ("priority", "run_at", "delay", "lease_for", "timeout", "retry", "trace"):
        value = getattr(new, name)
        # A zero duration is sent (it is not the number 0): the server refuses a lease of 0 s.
        if value is not None and value != 0:
            shared[name] = value
    return shared


def _kept_for(new: NewJob) -> timedelta:
    return KEY_KEPT_FOR if new.key_for is None else new.key_for


def enqueue(new: NewJob) -> Call[int]:
    if new.args and len(new.args) > TEXT_BYTES_MIN:
        many = enqueue_many([new])
        return Call(many.name, many.args, read=rows.one)
    keyed = {} if new.key is None else {"key": new.key, "key_for": _kept_for(new)}
    return Call("enqueue", {**_asked(new), "args": new.args, **keyed}, read=rows.one)


def enqueue_many(batch: Sequence[NewJob], trace: str | None = None) -> Call[list[int]]:
    """For jobs that share everything but args and key; `trace` is the default for jobs without one."""
    args: dict[str, Any] = {**_asked(batch[0]), "args": ArrayParam([new.args for new in batch], "text")}
    if trace is not None:
        args.setdefault("trace", trace)
    if any(new.key is not None for new in batch):
        args |= {"keys": ArrayParam([new.key for new in batch], "text"), "key_for": _kept_for(batch[0])}
    return Call("enqueue_many", args, read=rows.ids)


OPTIONS: Final = (
    "task", "queue", "priority", "run_at", "delay", "max_attempts", "lease_for", "timeout", "retry",
    "key_for",
)  # fmt: skip
"""What the jobs of a kind share; each job has its own args, trace and key."""

kind_of: Final = attrgetter(*OPTIONS)


@lru_cache(maxsize=512)
def _kind(*options: Any) -> str:
    """The options of a kind as JSON, without those that have the function's default."""
    told = {
        name: _interval(value) if isinstance(value, timedelta) else value
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
    return Call("enqueue_each", args, read=rows.enqueued)


def telling_which_are_new(call: Call[list[int]]) -> Call[list[tuple[int, bool]]]:
    """The same `enqueue_many`; it returns each id and whether its job is new."""
    return Call(call.name, call.args, read=rows.made)


def wake(queue: str) -> Call[None]:
    return Call("wake", {"queue": queue}, read=rows.nothing)


def wake_each(queues: Sequence[str]) -> Call[None]:
    return Call("wake_each", {"queues": ArrayParam(queues, "text")}, read=rows.nothing)


def wake_cancelled(job_ids: Sequence[int]) -> Call[None]:
    """Tell the workers of these jobs that they were cancelled: a hint; their heartbeats report it too."""
    return Call("wake", {"queue": notifications.cancelled_message(job_ids)}, read=rows.nothing)


def claim(
    queues: Sequence[str],
    max_jobs: int,
    *,
    lease: timedelta,
    claim: UUID,
    worker: int | None = None,
    timeout: timedelta = timedelta(hours=1),
    resend: bool = False,
    begins: Mapping[int, int] | None = None,
    trace: str | None = None,
    bytes_max: int | None = None,
    except_tasks: Sequence[str] = (),
) -> Call[list[ClaimedRow]]:
    """`begins` gives the start of some lanes, as the caller knows it; each job keeps the `trace`.

    `bytes_max` bounds the arguments of all jobs together, in place of 16 MiB; the first job is taken at any
    size. Jobs of `except_tasks` are not taken.
    """
    args = {
        "queues": ArrayParam(list(queues), "text"), "max_jobs": max_jobs, "lease": lease, "claim": claim,
        "worker": worker,
        "timeout": timeout, "resend": resend,
    }  # fmt: skip
    if begins:
        args |= {
            "lanes": ArrayParam(list(begins), "bigint"),
            "positions": ArrayParam(list(begins.values()), "bigint"),
        }
    if trace is not None:
        args["trace"] = trace
    if bytes_max is not None:
        args["bytes"] = bytes_max
    if except_tasks:
        args["except_tasks"] = ArrayParam(list(except_tasks), "text")
    return Call("claim", args, read=rows.claimed)


def heartbeat(
    leases: Sequence[Lease], lease: timedelta, worker: int | None = None
) -> Call[list[HeartbeatResult]]:
    return Call("heartbeat", {**_proofs(leases), "lease": lease, "worker": worker}, read=rows.beats)


def fence(lease: Lease) -> Call[None]:
    return Call("fence", lease.proof, read=rows.nothing)


def complete(lease: Lease, result: str | None) -> Call[None]:
    return Call("complete", {**lease.proof, "result": result}, read=rows.nothing)


def complete_in(lease: Lease, result: str | None, *, savepoint: bool = False) -> Call[None]:
    """The same in a transaction of the handler's own; refused inside a savepoint, unless that is allowed."""
    return Call("complete_in", {**lease.proof, "result": result, "savepoint": savepoint}, read=rows.nothing)


def complete_many(
    leases: Sequence[Held], results: Sequence[str | None], worker: int | None = None
) -> Call[list[SettleRefusal]]:
    # Most handlers return nothing: then no results are sent.
    sent = ArrayParam(results, "text") if any(results) else None
    return Call("complete_many", {**_proofs(leases), "results": sent, "worker": worker}, read=rows.answers)


def fail(lease: Lease, error: str, delay: timedelta) -> Call[str]:
    return Call("fail", {**lease.proof, "error": error, "delay": delay}, read=rows.one)


def fail_in(lease: Lease, error: str, delay: timedelta, *, savepoint: bool = False) -> Call[str]:
    said = {"error": error, "delay": delay, "savepoint": savepoint}
    return Call("fail_in", {**lease.proof, **said}, read=rows.one)


def fail_many(
    leases: Sequence[Held], errors: Sequence[str], delays: Sequence[timedelta], worker: int | None = None
) -> Call[list[SettleRefusal]]:
    said = {"errors": ArrayParam(errors, "text"), "delays": ArrayParam(delays, "interval")}
    return Call("fail_many", {**_proofs(leases), **said, "worker": worker}, read=rows.answers)


def crash(
    lease: Lease,
    error: str,
    signature: str,
    *,
    alone: bool,
    max_crashes: int | None = None,
    delay: timedelta | None = None,
) -> Call[str]:
    said = {"error": error, "signature": signature, "alone": alone}
    return Call("crash", {**lease.proof, **said, "max_crashes": max_crashes, "delay": delay}, read=rows.one)


def bury(lease: Lease, reason: str, error: str | None = None) -> Call[None]:
    return Call("bury", {**lease.proof, "reason": reason, "error": error}, read=rows.nothing)


def snooze(lease: Lease, delay: timedelta, reason: str = "") -> Call[None]:
    return Call("snooze", {**lease.proof, "delay": delay, "reason": reason}, read=rows.nothing)


def snooze_in(lease: Lease, delay: timedelta, reason: str, *, savepoint: bool = False) -> Call[None]:
    said = {"delay": delay, "reason": reason, "savepoint": savepoint}
    return Call("snooze_in", {**lease.proof, **said}, read=rows.nothing)


def snooze_unknown(lease: Lease, delay: timedelta) -> Call[str]:
    """No worker may know the task: returns `dead` when that was so for a day, else `queued`."""
    return Call("snooze", {**lease.proof, "delay": delay, "unknown_task": True}, read=rows.one)


def release(lease: Lease, reason: str = "", delay: timedelta = timedelta(0)) -> Call[None]:
    return Call("release", {**lease.proof, "delay": delay, "reason": reason}, read=rows.nothing)


def drop_claimed(lease: Lease, reason: str = "") -> Call[None]:
    return Call("drop_claimed", {**lease.proof, "reason": reason}, read=rows.nothing)


def database_identity() -> Call[str]:
    """Which database a connection is to; compared with the one that a lease is from."""
    return Call("database_identity", {}, read=rows.one)


def outcome(lease: Lease) -> Call[str]:
    return Call("outcome", lease.proof, read=rows.one)


def outcome_in(lease: Lease) -> Call[str]:
    """The same for a lease that its handler settled in its own transaction; `busy` while that is open."""
    return Call("outcome_in", lease.proof, read=rows.one)


def note_error(lease: Lease, error: str) -> Call[bool]:
    """Keep what a handler raised after its success; False where no row has the success."""
    return Call("note_error", {**lease.proof, "error": error}, read=rows.one)


def know_tasks(worker: int, tasks: Sequence[str] | None) -> Call[None]:
    """Claims of this worker take jobs of these tasks only; of every task with None."""
    known = None if tasks is None else ArrayParam(list(tasks), "text")
    return Call("know_tasks", {"worker": worker, "tasks": known}, read=rows.nothing)


def newest_place() -> Call[int]:
    return Call("newest_place", {}, read=rows.one)


def others_serve(queue: str, worker: int | None) -> Call[bool]:
    return Call("others_serve", {"queue": queue, "worker": worker}, read=rows.is_so)


def refused(lease: Lease, worker: int | None = None) -> Call[tuple[Any, ...]]:
    """Record a refused write; the claim proves that the lease existed."""
    return Call("refused", {**lease.proof, "worker": worker}, read=rows.first)


Named = tuple[int, int]
"""A lease by its job and token: enough for questions about it, not for writes."""


def recoveries(named: Sequence[Named]) -> Call[list[float]]:
    return Call("recoveries", _named(named), read=rows.column)


def zombies(named: Sequence[Named]) -> Call[list[float]]:
    return Call("zombies", _named(named), read=rows.column)


def metrics() -> Call[list[MetricRow]]:
    return Call("metrics", {}, read=rows.figures)


def round_(tick: timedelta) -> Call[bool]:
    """Whether this caller makes the round."""
    return Call("round", {"tick": tick}, read=rows.one)


def make_round(tick: timedelta) -> Call[Round]:
    """The same, with all that the round noticed."""
    return Call("round", {"tick": tick}, read=rows.a_round)


def reap(most: int = 500) -> Call[list[Reaped]]:
    return Call("reap", {"most": most}, read=rows.reaped)


def promote(most: int = 500) -> Call[list[tuple[str, int]]]:
    return Call("promote", {"most": most}, read=rows.queues)


def next_due() -> Call[float | None]:
    return Call("next_due", {}, read=rows.one)


def unknown_tasks() -> Call[list[UnknownJobs]]:
    """Mark due jobs that no running worker of their queue knows; those marked for a day are dead."""
    return Call("unknown_tasks", {}, read=rows.unknown_jobs)


def first_free() -> Call[list[tuple[str, int]]]:
    return Call("first_free", {}, read=rows.queues)


def backlog(queue: str | None = None, most: int = 10_000) -> Call[int]:
    return Call("backlog", {"queue": queue, "most": most}, read=rows.one)


def rescue(most: int = 500) -> Call[list[int]]:
    return Call("rescue", {"most": most}, read=rows.ids)


def quarantine(most: int = 500) -> Call[list[int]]:
    return Call("quarantine", {"most": most}, read=rows.ids)


def floors() -> Call[int]:
    return Call("floors", {}, read=rows.one)


def quiet_lanes() -> Call[int]:
    return Call("quiet_lanes", {}, read=rows.one)


def lead(worker: int, lead_for: timedelta = timedelta(seconds=10)) -> Call[bool]:
    return Call("lead", {"worker": worker, "lead_for": lead_for}, read=rows.one)


def partitions() -> Call[int]:
    return Call("partitions", {}, read=rows.one)


def drop_partitions() -> Call[int]:
    return Call("drop_partitions", {}, read=rows.one)


def prune(most: int = 1000) -> Call[tuple[Any, ...]]:
    return Call("prune", {"most": most}, read=rows.first)


def cancel(job_id: int, reason: str | None = None) -> Call[None]:
    return Call("cancel", {"job_id": job_id, "reason": reason}, read=rows.nothing)


def retry_now(job_id: int) -> Call[str]:
    return Call("retry_now", {"job_id": job_id}, read=rows.one)


def replay(job_id: int) -> Call[str]:
    return Call("replay", {"job_id": job_id}, read=rows.one)


def replay_many(
    queue: str | None = None, task: str | None = None, died_after: datetime | None = None, most: int = 1000
) -> Call[list[int]]:
    args = {"queue": queue, "task": task, "died_after": died_after, "most": most}
    return Call("replay_many", args, read=rows.ids)


def count_dead(
    queue: str | None = None, task: str | None = None, died_after: datetime | None = None
) -> Call[int]:
    return Call("count_dead", {"queue": queue, "task": task, "died_after": died_after}, read=rows.one)


def get(job_id: int) -> Call[JobInfo | None]:
    return Call("get_job", {"job_id": job_id}, read=rows.maybe_job)


def get_confirmed(job_id: int) -> Call[JobInfo | None]:
    """The same for a client that waits for the job's end: the end is durable before it is returned."""
    return Call("get_job", {"job_id": job_id, "confirmed": True}, read=rows.maybe_job)


def get_unread(job_id: int, *, confirmed: bool = False) -> Call[JobInfo | None]:
    """The same with args and result as JSON text, for callers that only pass them on."""
    asked = {"job_id": job_id, "confirmed": confirmed}
    return Call("get_job", asked, read=rows.maybe_job, raw_documents=True)


def outline(job_id: int) -> Call[Outline | None]:
    """The job without its payload, for a role that is neither an operator nor a server."""
    return Call("get_outline", {"job_id": job_id}, read=rows.maybe_outline)


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
    return Call("list_jobs", args, read=rows.jobs)


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
    return Call("find_jobs", args, read=rows.jobs)


def count_jobs(
    states: Sequence[str] | None = None,
    queues: Sequence[str] | None = None,
    task: str | None = None,
    most: int = 10_001,
) -> Call[int]:
    return Call("count_jobs", {**_filter(states, queues, task), "most": most}, read=rows.one)


def _filter(states: Sequence[str] | None, queues: Sequence[str] | None, task: str | None) -> dict[str, Any]:
    return {
        "states": None if states is None else ArrayParam(list(states), "text"),
        "queues": None if queues is None else ArrayParam(list(queues), "text"),
        "task": task,
    }


def ended(ids: Sequence[int]) -> Call[list[int]]:
    return Call("ended", {"ids": ArrayParam(list(ids), "bigint")}, read=rows.ids)


def for_each(verb: str, ids: Sequence[int], reason: str | None = None) -> Call[list[BulkResult]]:
    args = {"verb": verb, "ids": ArrayParam(list(ids), "bigint"), "reason": reason}
    return Call("for_each", args, read=rows.done)


def changes(since: datetime | None = None, most: int = 1_000) -> Call[list[LedgerEntry]]:
    return Call("changes", {"since": since, "most": most}, read=rows.entries)


HISTORY_MAX: Final = 1_000
"""The leases of a job that are read at once."""


def history(job_id: int, before: int | None = None, most: int = HISTORY_MAX) -> Call[list[LedgerEntry]]:
    """How the last leases of a job ended, oldest first; with `before`, the leases before that token."""
    return Call("history", {"job_id": job_id, "before": before, "most": most}, read=rows.entries)


def refusals(job_id: int | None = None, most: int = 50) -> Call[list[Refusal]]:
    return Call("list_refusals", {"job_id": job_id, "most": most}, read=rows.refusals)


def ledger(most: int = 50) -> Call[list[LedgerEntry]]:
    return Call("list_entries", {"most": most}, read=rows.entries)


def list_queues(name: str | None = None) -> Call[list[QueueInfo]]:
    """Every queue, or the one of this name."""
    return Call("list_queues", {} if name is None else {"name": name}, read=rows.queue_infos)


def list_workers(
    gone: bool = False, most: int = 100, queues: Collection[str] | None = None
) -> Call[list[WorkerInfo]]:
    """With `queues`, only the workers that serve one of them, with their queues and jobs among these."""
    args: dict[str, Any] = {"gone": gone, "most": most}
    if queues is not None:
        args["only_queues"] = ArrayParam(sorted(queues), "text")
    return Call("list_workers", args, read=rows.worker_infos)


def health() -> Call[tuple[Any, ...]]:
    return Call("health", {}, read=rows.first)


def doctor() -> Call[DoctorFacts]:
    return Call("doctor", {}, read=rows.vitals)


def wal_written() -> Call[int]:
    return Call("wal_written", {}, read=rows.one)


def pause(queue: str) -> Call[None]:
    return Call("pause", {"queue": queue}, read=rows.nothing)


def resume(queue: str) -> Call[None]:
    return Call("resume", {"queue": queue}, read=rows.nothing)


def set_retention(queue: str, what: str) -> Call[None]:
    return Call("set_retention", {"queue": queue, "what": what}, read=rows.nothing)


def remove_queues(queues: Sequence[str]) -> Call[list[RemovedQueue]]:
    return Call("remove_queues", {"queues": ArrayParam(list(queues), "text")}, read=rows.removed)


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
    return Call("configure", args, read=rows.nothing)


def worker_started(
    name: str,
    host: str,
    pid: int,
    queues: Sequence[str],
    jobs_max: int,
    version: str,
    key_name: str | None = None,
) -> Call[int]:
    args = {
        "name": name, "host": host, "pid": pid, "queues": ArrayParam(list(queues), "text"),
        "jobs_max": jobs_max,
        "version": version, "key_name": key_name,
    }  # fmt: skip
    return Call("worker_started", args, read=rows.one)


def worker_key(worker: int) -> Call[tuple[Any, ...] | None]:
    """A row with the name of the worker's API key; None when there is no such worker."""
    return Call("worker_key", {"worker": worker}, read=rows.maybe_first)


def worker_stopped(worker: int) -> Call[None]:
    return Call("worker_stopped", {"worker": worker}, read=rows.nothing)


def _named(leases: Sequence[Named]) -> dict[str, ArrayParam]:
    return {
        "ids": ArrayParam([job_id for job_id, _ in leases], "bigint"),
        "tokens": ArrayParam([token for _, token in leases], "bigint"),
    }


def create_key(
    id: str,
    hash: bytes,
    name: str,
    scopes: Sequence[str],
    queues: Sequence[str] | None = None,
    expires_at: datetime | None = None,
) -> Call[KeyInfo]:
    args = {
        "id": id, "hash": hash, "name": name, "scopes": ArrayParam(list(scopes), "text"),
        "queues": None if queues is None else ArrayParam(list(queues), "text"), "expires_at": expires_at,
    }  # fmt: skip
    return Call("create_key", args, read=rows.key_info)


def rotate_key(
    id: str, new_id: str, hash: bytes, overlap: timedelta, expires_at: datetime | None = None
) -> Call[KeyInfo]:
    args = {"id": id, "new_id": new_id, "hash": hash, "overlap": overlap, "expires_at": expires_at}
    return Call("rotate_key", args, read=rows.key_info)


def revoke_key(id: str, reason: str | None = None) -> Call[KeyInfo]:
    return Call("revoke_key", {"id": id, "reason": reason}, read=rows.key_info)


def list_keys(gone: bool = False) -> Call[list[KeyInfo]]:
    return Call("list_keys", {"gone": gone}, read=rows.key_infos)


def find_keys(key_ids: list[str]) -> Call[dict[str, FoundKey]]:
    """The keys that there are, by id."""
    return Call("find_keys", {"ids": ArrayParam(key_ids, "text")}, read=rows.found_keys)


def key_used(id: str) -> Call[None]:
    return Call("key_used", {"id": id}, read=rows.nothing)


def act_as(actor: str | None, reason: str | None = None) -> Call[None]:
    return Call("act_as", {"actor": actor, "reason": reason}, read=rows.nothing)


def acts(
    job_id: int | None = None,
    queue: str | None = None,
    verb: str | None = None,
    actor: str | None = None,
    before: int | None = None,
    most: int = 50,
) -> Call[list[AuditedAct]]:
    args = {
        "job_id": job_id, "queue": queue, "verb": verb, "actor": actor, "before": before, "most": most,
    }  # fmt: skip
    return Call("list_acts", args, read=rows.acts)


def make_roles(prefix: str = "faultline_", own: bool = False) -> Call[list[str]]:
    """Returns the roles that it created."""
    return Call("make_roles", {"prefix": prefix, "own": own}, read=rows.words)


def list_groups() -> Call[list[GroupRole]]:
    return Call("list_groups", {}, read=rows.groups)


def _proofs(leases: Sequence[Held]) -> dict[str, ArrayParam]:
    """The three values that every write of a worker names, for many leases in one order."""
    return {
        "ids": ArrayParam([lease.job_id for lease in leases], "bigint"),
        "tokens": ArrayParam([lease.token for lease in leases], "bigint"),
        "claims": ArrayParam([lease.claim for lease in leases], "uuid"),
    }
