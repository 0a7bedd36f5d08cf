"""Queues: list them, stop and let them go on, choose what is kept of their successes."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice
from operator import attrgetter
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query
from pydantic import ConfigDict, Field

from faultline.bounds import DEPTH_MAX, QUEUE_CHARS_MAX, check_age_after
from faultline.errors import InputError
from faultline.server.auth import Caller
from faultline.server.http import models
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import Operator, PageSize, QueueName, Reader, TheContext
from faultline.server.http.routes.job_acts import AReason, Why
from faultline.server.limits import PAGE_MAX
from faultline.server.problems import NO_SUCH_QUEUE, RequestRefused
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import QueueInfo
from faultline.text.suggest import did_you_mean

router = APIRouter(tags=["queues"])


AfterQueue = Annotated[
    str | None, Query(max_length=QUEUE_CHARS_MAX, description="The last queue of the page before.")
]
NEW: Any = Field(default=False, description="Also a queue that has had neither a job nor a worker.")


class QueueSettings(models.Model):
    """What can be set of a queue."""

    model_config = ConfigDict(extra="forbid")

    keep: Literal["full", "outline", "nothing"] | None = None
    max_depth: int | None = Field(
        default=None,
        ge=0,
        le=DEPTH_MAX,
        description="The most due jobs; enqueues of more are refused. 0: no bound.",
    )
    age_after_seconds: float | None = Field(
        default=None,
        ge=0,
        le=365 * 86_400,
        description="The age by which jobs move ahead by one priority; 0: none.",
    )
    reason: str | None = Field(default=None, max_length=1_000)
    new: bool = NEW


class PauseRequest(Why):
    """Why a queue is paused, and whether it may be one that nothing has used yet."""

    new: bool = NEW


async def seen(context: ApiContext, caller: Caller, scope: str = "read") -> Sequence[QueueInfo]:
    """The queues this caller may see, or do something else to."""
    queues = await context.queues.get()
    return [queue for queue in queues if caller.may(scope, queue.queue)]


@router.get("/queues")
async def list_queues(
    context: TheContext, caller: Reader, after: AfterQueue = None, most: PageSize = PAGE_MAX
) -> list[models.QueueView]:
    """Queues by name: how many jobs are due, running, for later and dead, and how far behind they are."""
    found = sorted(
        await seen(context, caller), key=attrgetter("queue")
    )  # the database may sort by another alphabet
    return models.queue_views(islice((queue for queue in found if queue.queue > (after or "")), most))


@router.get("/queues/{queue}")
async def get_queue(context: TheContext, caller: Reader, queue: QueueName) -> models.QueueView:
    """One queue."""
    return await _one(context, caller, queue)


@router.post("/queues/{queue}/pause")
async def pause(
    context: TheContext,
    caller: Operator,
    queue: QueueName,
    why: Annotated[PauseRequest | None, Body()] = None,
) -> models.QueueView:
    """Stop claims from the queue; what runs goes on. With `new`, a queue not yet seen starts paused."""
    return await _act(context, caller, queue, why, calls.pause(queue), new=why is not None and why.new)


@router.post("/queues/{queue}/resume")
async def resume(
    context: TheContext, caller: Operator, queue: QueueName, why: AReason = None
) -> models.QueueView:
    """Let claims from the queue go on."""
    view = await _act(context, caller, queue, why, calls.resume(queue), new=None)
    await context.sender.ahint(queue)
    return view


@router.patch("/queues/{queue}")
async def configure(
    context: TheContext, caller: Operator, queue: QueueName, wanted: QueueSettings
) -> models.QueueView:
    """Choose what the ledger keeps of its successes, how many due jobs it may hold, and how they age."""
    why, age = Why(reason=wanted.reason), wanted.age_after_seconds
    asked: list[Call[None]] = []
    if wanted.keep is not None:
        asked.append(calls.set_retention(queue, wanted.keep))
    if wanted.max_depth is not None or age is not None:
        aged = None if age is None else check_age_after(timedelta(seconds=age))
        asked.append(calls.configure_queue(queue, wanted.max_depth, aged))
    if not asked:
        raise InputError("name what to set: keep, max_depth or age_after_seconds")
    for call in asked:
        view = await _act(context, caller, queue, why, call, new=wanted.new)
    return view


async def _act(
    context: ApiContext, caller: Caller, queue: str, why: Why | None, call: Call[None], *, new: bool | None
) -> models.QueueView:
    """Do one act on a queue; `new` is None where an act on an unused queue makes no sense."""
    caller.require("operate", queue)
    if not new:
        # A mistyped name must not look like success.
        await _one(context, caller, queue, "operate", may_be_new=new is not None)
    async with context.acting(caller, None if why is None else why.reason) as store:
        await store.run(call)
    return await _one(context, caller, queue, "operate")


async def _one(
    context: ApiContext, caller: Caller, name: str, scope: str = "read", *, may_be_new: bool = False
) -> models.QueueView:
    if caller.may(scope, name):
        for queue in await context.run(calls.list_queues(name)):
            return models.QueueView.model_validate(queue)
    known = [queue.queue for queue in await seen(context, caller, scope)]
    better = did_you_mean(name, known) or "."
    detail = f"there is no queue {name}{better} None of that name has had a job or a worker."
    if may_be_new:
        detail += ' To pause or set one before that, send `"new": true`.'
    raise RequestRefused(NO_SUCH_QUEUE, detail)
