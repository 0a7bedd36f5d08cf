"""What else there is to look at: workers, the ledger, refusals, acts, the whole at a glance."""

from typing import Annotated

from fastapi import APIRouter, Query

from faultline.access import Caller
from faultline.api import models
from faultline.api.needs import (
    ID_MAX,
    AQueue,
    Cursor,
    Operator,
    PageSize,
    Reader,
    TheDesk,
    cursor_id,
    next_cursor,
    see_all,
)
from faultline.store import calls
from faultline.store.rows import WorkerInfo

router = APIRouter(tags=["looking"])

AJob = Annotated[int | None, Query(ge=1, le=ID_MAX)]
Text = Annotated[str | None, Query(min_length=1, max_length=200)]


def seen(caller: Caller, workers: list[WorkerInfo]) -> list[WorkerInfo]:
    """The workers of queues that this caller may see, each with those queues only."""
    mine = caller.queues
    if mine is None:
        return workers
    own = [(one, [queue for queue in one.queues if queue in mine]) for one in workers]
    return [one._replace(queues=queues) for one, queues in own if queues]


@router.get("/workers")
async def list_workers(
    desk: TheDesk, caller: Reader, gone: bool = False, most: PageSize = 100
) -> list[models.WorkerView]:
    """Workers, newest first; with `gone` those that have stopped as well."""
    return models.worker_views(seen(caller, await desk.run(calls.list_workers(gone, most))))


@router.get("/ledger")
async def list_entries(desk: TheDesk, caller: Reader, most: PageSize = 50) -> list[models.Entry]:
    """The leases of the newest jobs, and how each ended."""
    see_all(caller)
    return models.entries(await desk.run(calls.ledger(most)))


@router.get("/refusals")
async def list_refusals(desk: TheDesk, caller: Reader, most: PageSize = 50) -> list[models.RefusedWrite]:
    """Late writes that were refused, newest first."""
    see_all(caller)
    return models.refused_writes(await desk.run(calls.refusals(most=most)))


@router.get("/acts")
async def list_acts(
    desk: TheDesk,
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
    acts = await desk.run(calls.acts(job_id, queue, verb, actor, cursor_id(cursor), most))
    return models.ActPage(acts=models.act_views(acts), next=next_cursor(acts, most))


@router.get("/stats")
async def stats(desk: TheDesk, caller: Reader) -> models.Stats:
    """The whole at a glance; counted at most once a second."""
    glance = await desk.glance.get()
    queues = [queue for queue in glance.queues if caller.may("read", queue.queue)]
    workers = seen(caller, glance.workers)
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
