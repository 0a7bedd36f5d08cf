"""Limits: look at them, and change them at once; for keys without queues, since they concern all queues."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path
from pydantic import ConfigDict, Field

from faultline.bounds import TASK_CHARS_MAX
from faultline.errors import ConfigError, InputError
from faultline.limit import COUNT_MAX, RATE_MAX, RATE_MIN, Limit
from faultline.server.auth import Caller
from faultline.server.http import models
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import NAME, TheContext, requires_everywhere
from faultline.server.problems import NO_SUCH_LIMIT, RequestRefused
from faultline.store import calls
from faultline.store.rows import LimitInfo
from faultline.text.suggest import did_you_mean

router = APIRouter(tags=["limits"])

KEYS_MAX = 100
"""The keys of one limit that are answered."""

LimitName = Annotated[str, Path(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
SeesAll = Annotated[Caller, Depends(requires_everywhere("read"))]
OperatesAll = Annotated[Caller, Depends(requires_everywhere("operate"))]
Count: Any = Field(default=None, ge=1, le=COUNT_MAX)


class LimitSettings(models.Model):
    """All bounds of a limit; one that is left out does not limit."""

    model_config = ConfigDict(extra="forbid")

    per_key: int | None = Count
    total: int | None = Count
    rate: float | None = Field(default=None, ge=RATE_MIN, le=RATE_MAX, description="Starts a second.")
    burst: int | None = Count
    on_retry: Literal["yield", "block"] = "yield"
    parent: str | None = Field(default=None, min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)
    reason: str | None = Field(default=None, max_length=1_000)


class LimitView(models.Model):
    """A limit: its bounds, its tasks, and how many jobs hold a slot and wait for one (counted to 10,000)."""

    name: str
    per_key: int | None
    total: int | None
    rate: float | None
    burst: int | None
    on_retry: str
    parent: str | None
    tasks: list[str]
    queues: list[str]
    held: int
    waiting: int


class KeyOfLimit(models.Model):
    """A key of a limit, as the args of its first job have it."""

    key: str | None
    held: int
    waiting: int
    first_job: int


class LimitWithKeys(LimitView):
    """A limit with its keys, those first for which the most jobs wait."""

    keys: list[KeyOfLimit]


@router.get("/limits")
async def list_limits(context: TheContext, _: SeesAll) -> list[LimitView]:
    """Every limit, by name."""
    return [LimitView.model_validate(limit) for limit in await context.run(calls.list_limits())]


@router.get("/limits/{limit}")
async def get_limit(context: TheContext, _: SeesAll, limit: LimitName) -> LimitWithKeys:
    """One limit, with up to a hundred of its keys."""
    found = await _one(context, limit)
    gates = await context.run(calls.list_gates(limit, KEYS_MAX))
    keys = [KeyOfLimit.model_validate(gate) for gate in gates]
    return LimitWithKeys(**LimitView.model_validate(found).model_dump(), keys=keys)


@router.put("/limits/{limit}")
async def set_limit(
    context: TheContext, caller: OperatesAll, limit: LimitName, wanted: LimitSettings
) -> LimitView:
    """Make a limit, or change it at once: lower bounds stop new starts, and end nothing that runs."""
    try:
        asked = Limit(**wanted.model_dump(exclude={"reason"}), key="any" if wanted.per_key else None)
    except ConfigError as wrong:  # bounds that do not go together
        raise InputError(str(wrong)) from None
    async with context.acting(caller, wanted.reason) as store:
        await store.run(calls.set_limit(limit, asked))
    return LimitView.model_validate(await _one(context, limit))


async def _one(context: ApiContext, name: str) -> LimitInfo:
    known = await context.run(calls.list_limits())
    for limit in known:
        if limit.name == name:
            return limit
    better = did_you_mean(name, [limit.name for limit in known]) or "."
    raise RequestRefused(NO_SUCH_LIMIT, f"there is no limit {name}{better}")
