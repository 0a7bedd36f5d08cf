"""Calls of sql/functions/leases: what workers do, each write with the proof of its lease."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from faultline.lease import Held, Lease
from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import (
    ClaimedRow,
    HeartbeatResult,
    SettleRefusal,
)


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
    freed: Sequence[int] = (),
) -> Call[list[ClaimedRow]]:
    """`begins` gives the start of some lanes, as the caller knows it; each job keeps the `trace`.

    `bytes_max` bounds the arguments of all jobs together, in place of 16 MiB; the first job is taken at any
    size. Jobs of `except_tasks` are not taken. At the gates in `freed` the caller has freed slots.
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
    if freed:
        args["freed"] = ArrayParam(list(freed), "bigint")
    return Call("claim", args, read=readers.claimed)


def heartbeat(
    leases: Sequence[Lease], lease: timedelta, worker: int | None = None
) -> Call[list[HeartbeatResult]]:
    return Call("heartbeat", {**_proofs(leases), "lease": lease, "worker": worker}, read=readers.beats)


def fence(lease: Lease) -> Call[None]:
    return Call("fence", lease.proof, read=readers.nothing)


def complete(lease: Lease, result: str | None) -> Call[None]:
    return Call("complete", {**lease.proof, "result": result}, read=readers.nothing)


def complete_in(lease: Lease, result: str | None, *, savepoint: bool = False) -> Call[None]:
    """The same in a transaction of the handler's own; refused inside a savepoint, unless that is allowed."""
    return Call(
        "complete_in", {**lease.proof, "result": result, "savepoint": savepoint}, read=readers.nothing
    )


def complete_many(
    leases: Sequence[Held], results: Sequence[str | None], worker: int | None = None
) -> Call[list[SettleRefusal]]:
    # Most handlers return nothing: then no results are sent.
    sent = ArrayParam(results, "text") if any(results) else None
    return Call("complete_many", {**_proofs(leases), "results": sent, "worker": worker}, read=readers.answers)


def fail(lease: Lease, error: str, delay: timedelta) -> Call[str]:
    return Call("fail", {**lease.proof, "error": error, "delay": delay}, read=readers.one)


def fail_in(lease: Lease, error: str, delay: timedelta, *, savepoint: bool = False) -> Call[str]:
    said = {"error": error, "delay": delay, "savepoint": savepoint}
    return Call("fail_in", {**lease.proof, **said}, read=readers.one)


def fail_many(
    leases: Sequence[Held], errors: Sequence[str], delays: Sequence[timedelta], worker: int | None = None
) -> Call[list[SettleRefusal]]:
    said = {"errors": ArrayParam(errors, "text"), "delays": ArrayParam(delays, "interval")}
    return Call("fail_many", {**_proofs(leases), **said, "worker": worker}, read=readers.answers)


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
    return Call(
        "crash", {**lease.proof, **said, "max_crashes": max_crashes, "delay": delay}, read=readers.one
    )


def bury(lease: Lease, reason: str, error: str | None = None) -> Call[None]:
    return Call("bury", {**lease.proof, "reason": reason, "error": error}, read=readers.nothing)


def snooze(lease: Lease, delay: timedelta, reason: str = "") -> Call[None]:
    return Call("snooze", {**lease.proof, "delay": delay, "reason": reason}, read=readers.nothing)


def snooze_in(lease: Lease, delay: timedelta, reason: str, *, savepoint: bool = False) -> Call[None]:
    said = {"delay": delay, "reason": reason, "savepoint": savepoint}
    return Call("snooze_in", {**lease.proof, **said}, read=readers.nothing)


def snooze_unknown(lease: Lease, delay: timedelta) -> Call[str]:
    """No worker may know the task: returns `dead` when that was so for a day, else `queued`."""
    return Call("snooze", {**lease.proof, "delay": delay, "unknown_task": True}, read=readers.one)


def release(lease: Lease, reason: str = "", delay: timedelta = timedelta(0)) -> Call[None]:
    return Call("release", {**lease.proof, "delay": delay, "reason": reason}, read=readers.nothing)


def cancel_claimed(lease: Lease, reason: str = "") -> Call[None]:
    return Call("cancel_claimed", {**lease.proof, "reason": reason}, read=readers.nothing)


def outcome(lease: Lease) -> Call[str]:
    return Call("outcome", lease.proof, read=readers.one)


def outcome_in(lease: Lease) -> Call[str]:
    """The same for a lease that its handler settled in its own transaction; `busy` while that is open."""
    return Call("outcome_in", lease.proof, read=readers.one)


def note_error(lease: Lease, error: str) -> Call[bool]:
    """Keep what a handler raised after its success; False where no row has the success."""
    return Call("note_error", {**lease.proof, "error": error}, read=readers.one)


def know_tasks(worker: int, tasks: Sequence[str] | None) -> Call[None]:
    """Claims of this worker take jobs of these tasks only; of every task with None."""
    known = None if tasks is None else ArrayParam(list(tasks), "text")
    return Call("know_tasks", {"worker": worker, "tasks": known}, read=readers.nothing)


def others_serve(queue: str, worker: int | None) -> Call[bool]:
    return Call("others_serve", {"queue": queue, "worker": worker}, read=readers.is_so)


def refused(lease: Lease, worker: int | None = None) -> Call[tuple[Any, ...]]:
    """Record a refused write; the claim proves that the lease existed."""
    return Call("refused", {**lease.proof, "worker": worker}, read=readers.first)


Named = tuple[int, int]
"""A lease by its job and token: enough for questions about it, not for writes."""


def recoveries(named: Sequence[Named]) -> Call[list[float]]:
    return Call("recoveries", _named(named), read=readers.column)


def zombies(named: Sequence[Named]) -> Call[list[float]]:
    return Call("zombies", _named(named), read=readers.column)


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
    return Call("worker_started", args, read=readers.one)


def worker_stopped(worker: int) -> Call[None]:
    return Call("worker_stopped", {"worker": worker}, read=readers.nothing)


def _named(leases: Sequence[Named]) -> dict[str, ArrayParam]:
    return {
        "ids": ArrayParam([job_id for job_id, _ in leases], "bigint"),
        "tokens": ArrayParam([token for _, token in leases], "bigint"),
    }


def _proofs(leases: Sequence[Held]) -> dict[str, ArrayParam]:
    """The three values that every write of a worker names, for many leases in one order."""
    return {
        "ids": ArrayParam([lease.job_id for lease in leases], "bigint"),
        "tokens": ArrayParam([lease.token for lease in leases], "bigint"),
        "claims": ArrayParam([lease.claim for lease in leases], "uuid"),
    }
