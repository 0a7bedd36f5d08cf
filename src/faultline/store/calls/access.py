"""Calls of sql/functions/access: API keys, the acts of operators, roles."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from faultline.store import readers
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from faultline.store.rows import (
    AuditedAct,
    FoundKey,
    GroupRole,
    KeyInfo,
)


def worker_key(worker: int) -> Call[tuple[Any, ...] | None]:
    """A row with the name of the worker's API key; None when there is no such worker."""
    return Call("worker_key", {"worker": worker}, read=readers.maybe_first)


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
    return Call("create_key", args, read=readers.key_info)


def rotate_key(
    id: str, new_id: str, hash: bytes, overlap: timedelta, expires_at: datetime | None = None
) -> Call[KeyInfo]:
    args = {"id": id, "new_id": new_id, "hash": hash, "overlap": overlap, "expires_at": expires_at}
    return Call("rotate_key", args, read=readers.key_info)


def revoke_key(id: str, reason: str | None = None) -> Call[KeyInfo]:
    return Call("revoke_key", {"id": id, "reason": reason}, read=readers.key_info)


def list_keys(gone: bool = False) -> Call[list[KeyInfo]]:
    return Call("list_keys", {"gone": gone}, read=readers.key_infos)


def find_keys(key_ids: list[str]) -> Call[dict[str, FoundKey]]:
    """The keys that there are, by id."""
    return Call("find_keys", {"ids": ArrayParam(key_ids, "text")}, read=readers.found_keys)


def key_used(id: str) -> Call[None]:
    return Call("key_used", {"id": id}, read=readers.nothing)


def act_as(actor: str | None, reason: str | None = None) -> Call[None]:
    return Call("act_as", {"actor": actor, "reason": reason}, read=readers.nothing)


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
    return Call("list_acts", args, read=readers.acts)


def make_roles(prefix: str = "faultline_", own: bool = False) -> Call[list[str]]:
    """Returns the roles that it created."""
    return Call("make_roles", {"prefix": prefix, "own": own}, read=readers.words)


def list_groups() -> Call[list[GroupRole]]:
    return Call("list_groups", {}, read=readers.groups)
