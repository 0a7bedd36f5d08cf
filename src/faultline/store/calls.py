"""One Python function for each SQL function: arguments in, Call out."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from faultline.job import JobInfo, LedgerEntry, NewJob, Refusal
from faultline.lease import Held, Lease
from faultline.store import news, rows
from faultline.store.arrays import Many
from faultline.store.call import Call
from faultline.store.rows import (
    Act,
    Answer,
    Beat,
    Claimed,
    Done,
    Figure,
    FoundKey,
    GroupRole,
    KeyInfo,
    Outline,
    QueueInfo,
    Reaped,
    Removed,
    Round,
    Vitals,
    WorkerInfo,
)

KEY_KEPT_FOR = timedelta(days=1)


def _asked(new: NewJob) -> dict[str, Any]:
    """What jobs of one batch share; only what differs from the function's own defaults is sent."""
    shared: dict[str, Any] = {"task": new.task, "queue": new.queue, "max_attempts": new.max_attempts}
    for name in ("priority", "run_at", "delay", "lease_for", "timeout", "retry", "trace"):
        value = getattr(new, name)
        # A duration of nothing is sent (it is not the number 0): a lease of 0 s is refused, not forgotten.
        if value is not None and value != 0:
            shared[name] = value
    return shared


def _kept_for(new: NewJob) -> timedelta:
    return KEY_KEPT_FOR if new.key_for is None else new.key_for


def enqueue(new: NewJob) -> Call[int]:
    keyed = {} if new.key is None else {"key": new.key, "key_for": _kept_for(new)}
    return Call("enqueue", {**_asked(new), "args": new.args, **keyed}, read=rows.one)


def enqueue_many(batch: Sequence[NewJob], trace: str | None = None) -> Call[list[int]]:
    """For jobs that share everything but args and key; `trace` is for those that bring none."""
    args: dict[str, Any] = {**_asked(batch[0]), "args": Many([new.args for new in batch], "text")}
    if trace is not None:
        args.setdefault("trace", trace)
    if any(new.key is not None for new in batch):
        args |= {"keys": Many([new.key for new in batch], "text"), "key_for": _kept_for(batch[0])}
    return Call("enqueue_many", args, read=rows.ids)


def telling_which_are_new(call: Call[list[int]]) -> Call[list[tuple[int, bool]]]:
    """The same `enqueue_many`, answered with each id and whether its job is new."""
    return Call(call.name, call.args, read=rows.made)


def wake(queue: str) -> Call[None]:
    return Call("wake", {"queue": queue}, read=rows.nothing)


def wake_cancelled(job_ids: Sequence[int]) -> Call[None]:
    """Tell whoever runs these jobs that they were cancelled: a hint, after the commit; a beat says it too."""
    return Call("wake", {"queue": news.of_cancelled(job_ids)}, read=rows.nothing)


def claim(
    queues: Sequence[str],
    room: int,
    *,
    lease: timedelta,
    claim: UUID,
    worker: int | None = None,
    timeout: timedelta = timedelta(hours=1),
    again: bool = False,
    begins: Mapping[int, int] | None = None,
    trace: str | None = None,
    bytes_max: int | None = None,
    except_tasks: Sequence[str] = (),
) -> Call[list[Claimed]]:
    """`begins` says of some lanes where they begin, by the caller's experience; `trace` is kept with each.

    `bytes_max` bounds their arguments together, in place of 16 MiB; one job comes whatever it weighs. Jobs of
    `except_tasks` are left where they are.
    """
    args = {
        "queues": Many(list(queues), "text"), "room": room, "lease": lease, "claim": claim, "worker": worker,
        "timeout": timeout, "again": again,
    }  # fmt: skip
    if begins:
        args |= {"lanes": Many(list(begins), "bigint"), "places": Many(list(begins.values()), "bigint")}
    if trace is not None:
        args["trace"] = trace
    if bytes_max is not None:
        args["bytes"] = bytes_max
    if except_tasks:
        args["except_tasks"] = Many(list(except_tasks), "text")
    return Call("claim", args, read=rows.claimed)


def heartbeat(leases: Sequence[Lease], lease: timedelta, worker: int | None = None) -> Call[list[Beat]]:
    return Call("heartbeat", {**_proofs(leases), "lease": lease, "worker": worker}, read=rows.beats)


def fence(lease: Lease) -> Call[None]:
    return Call("fence", lease.proof, read=rows.nothing)


def complete(lease: Lease, result: str | None) -> Call[None]:
    return Call("complete", {**lease.proof, "result": result}, read=rows.nothing)


def complete_many(
    leases: Sequence[Held], results: Sequence[str | None], worker: int | None = None
) -> Call[list[Answer]]:
    # Most handlers return nothing: then nothing is sent for it.
    sent = Many(results, "text") if any(results) else None
    return Call("complete_many", {**_proofs(leases), "results": sent, "worker": worker}, read=rows.answers)


def fail(lease: Lease, error: str, delay: timedelta) -> Call[str]:
    return Call("fail", {**lease.proof, "error": error, "delay": delay}, read=rows.one)


def fail_many(
    leases: Sequence[Held], errors: Sequence[str], delays: Sequence[timedelta], worker: int | None = None
) -> Call[list[Answer]]:
    said = {"errors": Many(errors, "text"), "delays": Many(delays, "interval")}
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


def release(lease: Lease, reason: str = "", delay: timedelta = timedelta(0)) -> Call[None]:
    return Call("release", {**lease.proof, "delay": delay, "reason": reason}, read=rows.nothing)


def drop_claimed(lease: Lease, reason: str = "") -> Call[None]:
    return Call("drop_claimed", {**lease.proof, "reason": reason}, read=rows.nothing)


def outcome(lease: Lease) -> Call[str]:
    return Call("outcome", lease.proof, read=rows.one)


def others_serve(queue: str, worker: int | None) -> Call[bool]:
    return Call("others_serve", {"queue": queue, "worker": worker}, read=rows.is_so)


def refused(lease: Lease, worker: int | None = None) -> Call[tuple[Any, ...]]:
    """Recorded if the lease was given: its claim tells."""
    return Call("refused", {**lease.proof, "worker": worker}, read=rows.first)


Named = tuple[int, int]
"""A lease by its job and token: enough to ask about it, and not to write."""


def recoveries(named: Sequence[Named]) -> Call[list[float]]:
    return Call("recoveries", _named(named), read=rows.column)


def zombies(named: Sequence[Named]) -> Call[list[float]]:
    return Call("zombies", _named(named), read=rows.column)


def metrics() -> Call[list[Figure]]:
    return Call("metrics", {}, read=rows.figures)


def round_(tick: timedelta) -> Call[bool]:
    """Whether the round is ours."""
    return Call("round", {"tick": tick}, read=rows.one)


def make_round(tick: timedelta) -> Call[Round]:
    """The same, with what is noticed in a round."""
    return Call("round", {"tick": tick}, read=rows.a_round)


def reap(most: int = 500) -> Call[list[Reaped]]:
    return Call("reap", {"most": most}, read=rows.reaped)


def promote(most: int = 500) -> Call[list[tuple[str, int]]]:
    return Call("promote", {"most": most}, read=rows.queues)


def next_due() -> Call[float | None]:
    return Call("next_due", {}, read=rows.one)


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
    """The same for whoever waits for its end: one that is told is as durable as if it were written now."""
    return Call("get_job", {"job_id": job_id, "confirmed": True}, read=rows.maybe_job)


def get_unread(job_id: int, *, confirmed: bool = False) -> Call[JobInfo | None]:
    """The same with args and result as JSON text, for callers that only pass them on."""
    asked = {"job_id": job_id, "confirmed": confirmed}
    return Call("get_job", asked, read=rows.maybe_job, raw_documents=True)


def outline(job_id: int) -> Call[Outline | None]:
    """The job without its payload: what a role may ask that is neither an operator nor a server."""
    return Call("get_outline", {"job_id": job_id}, read=rows.maybe_outline)


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
    """Without args and results: a page stays small whatever the jobs hold."""
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
        "states": None if states is None else Many(list(states), "text"),
        "queues": None if queues is None else Many(list(queues), "text"),
        "task": task,
    }


def ended(ids: Sequence[int]) -> Call[list[int]]:
    return Call("ended", {"ids": Many(list(ids), "bigint")}, read=rows.ids)


def for_each(verb: str, ids: Sequence[int], reason: str | None = None) -> Call[list[Done]]:
    args = {"verb": verb, "ids": Many(list(ids), "bigint"), "reason": reason}
    return Call("for_each", args, read=rows.done)


def changes(since: datetime | None = None, most: int = 1_000) -> Call[list[LedgerEntry]]:
    return Call("changes", {"since": since, "most": most}, read=rows.entries)


def history(job_id: int) -> Call[list[LedgerEntry]]:
    return Call("history", {"job_id": job_id}, read=rows.entries)


def refusals(job_id: int | None = None, most: int = 50) -> Call[list[Refusal]]:
    return Call("list_refusals", {"job_id": job_id, "most": most}, read=rows.refusals)


def ledger(most: int = 50) -> Call[list[LedgerEntry]]:
    return Call("list_entries", {"most": most}, read=rows.entries)


def list_queues(name: str | None = None) -> Call[list[QueueInfo]]:
    """Every queue, or the one of this name."""
    return Call("list_queues", {} if name is None else {"name": name}, read=rows.queue_infos)


def list_workers(gone: bool = False, most: int = 100) -> Call[list[WorkerInfo]]:
    return Call("list_workers", {"gone": gone, "most": most}, read=rows.worker_infos)


def health() -> Call[tuple[Any, ...]]:
    return Call("health", {}, read=rows.first)


def doctor() -> Call[Vitals]:
    return Call("doctor", {}, read=rows.vitals)


def wal_written() -> Call[int]:
    return Call("wal_written", {}, read=rows.one)


def pause(queue: str) -> Call[None]:
    return Call("pause", {"queue": queue}, read=rows.nothing)


def resume(queue: str) -> Call[None]:
    return Call("resume", {"queue": queue}, read=rows.nothing)


def keep(queue: str, what: str) -> Call[None]:
    return Call("keep", {"queue": queue, "what": what}, read=rows.nothing)


def remove_queues(queues: Sequence[str]) -> Call[list[Removed]]:
    return Call("remove_queues", {"queues": Many(list(queues), "text")}, read=rows.removed)


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
        "name": name, "host": host, "pid": pid, "queues": Many(list(queues), "text"), "jobs_max": jobs_max,
        "version": version, "key_name": key_name,
    }  # fmt: skip
    return Call("worker_started", args, read=rows.one)


def worker_key(worker: int) -> Call[tuple[Any, ...] | None]:
    """The name of the API key it came with, in a row of one; None when there is no such worker."""
    return Call("worker_key", {"worker": worker}, read=rows.maybe_first)


def worker_stopped(worker: int) -> Call[None]:
    return Call("worker_stopped", {"worker": worker}, read=rows.nothing)


def _named(leases: Sequence[Named]) -> dict[str, Many]:
    return {
        "ids": Many([job_id for job_id, _ in leases], "bigint"),
        "tokens": Many([token for _, token in leases], "bigint"),
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
        "id": id, "hash": hash, "name": name, "scopes": Many(list(scopes), "text"),
        "queues": None if queues is None else Many(list(queues), "text"), "expires_at": expires_at,
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


def find_key(id: str) -> Call[FoundKey | None]:
    return Call("find_key", {"id": id}, read=rows.found_key)


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
) -> Call[list[Act]]:
    args = {
        "job_id": job_id, "queue": queue, "verb": verb, "actor": actor, "before": before, "most": most,
    }  # fmt: skip
    return Call("list_acts", args, read=rows.acts)


def make_roles(prefix: str = "faultline_", own: bool = False) -> Call[list[str]]:
    """Answers with the roles that were not there before."""
    return Call("make_roles", {"prefix": prefix, "own": own}, read=rows.words)


def list_groups() -> Call[list[GroupRole]]:
    return Call("list_groups", {}, read=rows.groups)


def _proofs(leases: Sequence[Held]) -> dict[str, Many]:
    """The three values every write of a worker must name, for many leases, in the order of their jobs."""
    return {
        "ids": Many([lease.job_id for lease in leases], "bigint"),
        "tokens": Many([lease.token for lease in leases], "bigint"),
        "claims": Many([lease.claim for lease in leases], "uuid"),
    }
