"""Queues: list them, stop and let them go on, choose what is kept of their successes."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body
from pydantic import ConfigDict, Field

from faultline.access import Caller
from faultline.api import models
from faultline.api.desk import Desk
from faultline.api.needs import Operator, QueueName, Reader, TheDesk
from faultline.api.routes.operate import AReason, Why
from faultline.errors import JobNotFound
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import QueueInfo

router = APIRouter(tags=["queues"])


NEW: Any = Field(default=False, description="Also a queue that has had neither a job nor a worker.")


class Settings(models.Model):
    """What can be set of a queue."""

    model_config = ConfigDict(extra="forbid")

    keep: Literal["full", "outline", "nothing"]
    reason: str | None = Field(default=None, max_length=1_000)
    new: bool = NEW


class Pause(Why):
    """Why a queue is paused, and whether it may be one that nothing has used yet."""

    new: bool = NEW


async def seen(desk: Desk, caller: Caller) -> Sequence[QueueInfo]:
    """The queues this caller may see."""
    queues = await desk.queues.get()
    return [queue for queue in queues if caller.may("read", queue.queue)]


@router.get("/queues")
async def list_queues(desk: TheDesk, caller: Reader) -> list[models.QueueView]:
    """Every queue: how many of its jobs are due, running, for later and dead, and how far behind it is."""
    return models.queue_views(await seen(desk, caller))


@router.get("/queues/{queue}")
async def get_queue(desk: TheDesk, caller: Reader, queue: QueueName) -> models.QueueView:
    """One queue."""
    return await _one(desk, caller, queue)


@router.post("/queues/{queue}/pause")
async def pause(
    desk: TheDesk, caller: Operator, queue: QueueName, why: Annotated[Pause | None, Body()] = None
) -> models.QueueView:
    """Stop claims from the queue; what runs goes on. With `new`, a queue not yet seen starts paused."""
    return await _act(desk, caller, queue, why, calls.pause(queue), new=why is not None and why.new)


@router.post("/queues/{queue}/resume")
async def resume(desk: TheDesk, caller: Operator, queue: QueueName, why: AReason = None) -> models.QueueView:
    """Let claims from the queue go on."""
    view = await _act(desk, caller, queue, why, calls.resume(queue))
    await desk.sender.ahint(queue)
    return view


@router.patch("/queues/{queue}")
async def configure(desk: TheDesk, caller: Operator, queue: QueueName, wish: Settings) -> models.QueueView:
    """Choose what the ledger keeps of its successes from now on: full, outline or nothing."""
    why = Why(reason=wish.reason)
    return await _act(desk, caller, queue, why, calls.keep(queue, wish.keep), new=wish.new)


async def _act(
    desk: Desk, caller: Caller, queue: str, why: Why | None, call: Call[None], *, new: bool = False
) -> models.QueueView:
    caller.require("operate", queue)
    if not new:
        await _one(desk, caller, queue, "operate")  # a mistyped name must not look like success
    async with desk.acting(caller, None if why is None else why.reason) as store:
        await store.run(call)
    return await _one(desk, caller, queue, "operate")


async def _one(desk: Desk, caller: Caller, name: str, scope: str = "read") -> models.QueueView:
    if caller.may(scope, name):
        for queue in await desk.run(calls.list_queues(name)):
            return models.QueueView.model_validate(queue)
    raise JobNotFound(
        f"there is no queue {name}: none of that name has had a job or a worker. To pause or set one before "
        'that, send `"new": true`'
    )
