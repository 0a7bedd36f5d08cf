"""Other reads: workers, the ledger, refusals, acts, the overview."""

from typing import Annotated

from fastapi import APIRouter, Query

from faultline.server.http import models
from faultline.server.http.dependencies import (
    ID_MAX,
    AQueue,
    Cursor,
    Operator,
    PageSize,
    Reader,
    TheContext,
    cursor_id,
    next_cursor,
    see_all,
)
from faultline.store import calls

router = APIRouter(tags=["looking"])

AJob = Annotated[int | None, Query(ge=1, le=ID_MAX)]
Text = Annotated[str | None, Query(min_length=1, max_length=200)]


@router.get("/workers")
async def list_workers(
    context: TheContext, caller: Reader, gone: bool = False, most: PageSize = 100
) -> list[models.WorkerView]:
    """Workers, newest first; with `gone` those that have stopped as well."""
    workers = await context.run(calls.list_workers(gone, most, caller.queues))
    return models.worker_views(workers)


@router.get("/ledger")
async def list_entries(
    context: TheContext, caller: Reader, most: PageSize = 50
) -> list[models.LedgerEntryView]:
    """The leases of the newest jobs, and how each ended."""
    see_all(caller)
    return models.entries(await context.run(calls.ledger(most)))


@router.get("/refusals")
async def list_refusals(
    context: TheContext, caller: Reader, most: PageSize = 50
) -> list[models.RefusedWrite]:
    """Late writes that were refused, newest first."""
    see_all(caller)
    return models.refused_writes(await context.run(calls.refusals(most=most)))


@router.get("/acts")
async def list_acts(
    context: TheContext,
    caller: Operator,
    job_id: AJob = None,
    queue: AQueue = None,
    verb: Text = None,
    actor: Text = None,
    cursor: Cursor = None,
    most: PageSize = 50,
) -> models.ActPage:
    """What people did, newest first: who, when, what, on what, why."""
    if queue is None:
        see_all(caller)
    else:
        caller.require("operate", queue)
    acts = await context.run(calls.acts(job_id, queue, verb, actor, cursor_id(cursor), most))
    return models.ActPage(acts=models.act_views(acts), next=next_cursor(acts, most))


@router.get("/stats")
async def stats(context: TheContext, caller: Reader) -> models.Stats:
    """The whole at a glance; counted at most once a second."""
    glance = await context.stats.get()
    queues = [queue for queue in glance.queues if caller.may("read", queue.queue)]
    workers = await context.workers.of(caller.queues).get()
    return models.Stats(
        due=sum(queue.due for queue in queues),
        running=sum(queue.running for queue in queues),
        scheduled=sum(queue.scheduled for queue in queues),
        dead=sum(queue.dead for queue in queues),
        lag_seconds=max((queue.lag_seconds or 0.0 for queue in queues if not queue.paused), default=0.0),
        queues=len(queues),
        paused=sum(queue.paused for queue in queues),
        workers=sum(not worker.silent for worker in workers),
        silent_workers=sum(worker.silent for worker in workers),
        round_age_seconds=glance.round_age,
    )
