"""Calls of sql/functions/limits: bounds on how many jobs run at once, and how many start a second."""

from collections.abc import Sequence

from faultline.limit import Limit
from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import GateInfo, LimitInfo, WaitsFor


def set_limit(name: str, limit: Limit, *, from_code: bool = False) -> Call[bool]:
    """True where something changed. What a worker declares changes nothing until its declaration does."""
    args = {
        "name": name, "per_key": limit.per_key, "total": limit.total, "rate": limit.per_second,
        "burst": limit.burst, "on_retry": limit.on_retry, "parent": limit.parent, "from_code": from_code,
    }  # fmt: skip
    return Call("set_limit", args, read=readers.one)


def limit_task(
    task: str, limit_name: str | None, key_path: Sequence[str] | None = None, queue: str | None = None
) -> Call[bool]:
    """Tie a task to a limit, or free it; True where that was not so before."""
    path = None if key_path is None else ArrayParam(list(key_path), "text")
    return Call(
        "limit_task",
        {"task": task, "limit_name": limit_name, "key_path": path, "queue": queue},
        read=readers.one,
    )


def move_to_gates(task: str, above: int = 0, most: int = 5000) -> Call[tuple[int, int | None]]:
    """How many jobs of this batch came under the limit of their task, and the last id that was looked at."""
    return Call("move_to_gates", {"task": task, "after": above, "most": most}, read=readers.first)


def sweep_gates(most: int = 100) -> Call[list[tuple[str, int]]]:
    return Call("sweep_gates", {"most": most}, read=readers.queues)


def raise_limit_floors() -> Call[int]:
    return Call("raise_limit_floors", {}, read=readers.one)


def list_limits(name: str | None = None) -> Call[list[LimitInfo]]:
    return Call("list_limits", {"name": name}, read=readers.limits)


def list_gates(name: str, most: int = 20) -> Call[list[GateInfo]]:
    return Call("list_gates", {"name": name, "most": most}, read=readers.gates)


def waits_for(job_id: int) -> Call[WaitsFor | None]:
    return Call("waits_for", {"job_id": job_id}, read=readers.maybe_waits)
