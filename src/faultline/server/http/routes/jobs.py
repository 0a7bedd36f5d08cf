"""Jobs: submit many, get, wait, list; and the history of their leases.

`POST /jobs`, which submits one, is in submit/fast_path.py: it takes no way through the router.
"""

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from faultline.errors import OutOfBounds
from faultline.job import JobState
from faultline.server.http import models
from faultline.server.http.dependencies import (
    AQueue,
    ATask,
    BeforeToken,
    Cursor,
    JobId,
    PageSize,
    Producer,
    Reader,
    TheContext,
    as_json,
    cursor_id,
    job_for,
    next_cursor,
    outline_for,
    queues_of,
    take_room,
)
from faultline.server.http.submit.submission import decode_many
from faultline.server.throttling.document_pacing import LARGE_BYTES, DocumentPacing
from faultline.store import calls

router = APIRouter(tags=["jobs"])

QUEUES_MAX: Final = 1_000
"""A queue that is new is a row for good, and a batch may have 10,000 jobs."""

_BATCH: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Batch"}}},
    }
}


@router.post("/jobs/batch", status_code=201, openapi_extra=_BATCH)
async def submit_batch(context: TheContext, caller: Producer, request: Request) -> models.SubmittedMany:
    """Put many jobs in their queues, all of them or none."""
    body = await request.body()
    pacing, most = DocumentPacing.of_this_loop(), context.config.limits.batch_jobs_max
    checks = await pacing.one(lambda: decode_many(body, most), len(body))
    jobs = await pacing.all_of(checks, len(body))
    if len(body) > LARGE_BYTES:
        caller = await request.state.who()  # the turn may have come late
    queues = {new.queue for new in jobs}
    if len(queues) > QUEUES_MAX:
        raise OutOfBounds(f"the jobs of a batch go to at most {QUEUES_MAX:,} queues; got {len(queues):,}")
    for queue in queues:
        caller.require("enqueue", queue)
    async with asyncio.timeout(context.config.limits.answer_seconds_max):
        return models.SubmittedMany(ids=await context.sender.aenqueue_many(jobs))


@router.get("/jobs")
async def list_jobs(
    context: TheContext,
    caller: Reader,
    state: Annotated[list[JobState] | None, Query(max_length=6)] = None,
    queue: AQueue = None,
    task: ATask = None,
    key: Annotated[str | None, Query(min_length=1, max_length=255)] = None,
    cursor: Cursor = None,
    most: PageSize = 50,
) -> models.JobPage:
    """List jobs, newest first, without their args and results."""
    found = await context.run(
        calls.find_jobs(state, queues_of(caller, "read", queue), task, key, cursor_id(cursor), most)
    )
    return models.JobPage(jobs=models.outlines(found), next=next_cursor(found, most))


@router.get("/jobs/{job_id}", response_model=models.JobView)
async def get_job(context: TheContext, caller: Reader, request: Request, job_id: JobId) -> Response:
    """One job with its args and, once it succeeded, its result."""
    await take_room(context, caller, request)
    return as_json(models.view(await job_for(context, caller, "read", job_id)))


@router.get("/jobs/{job_id}/wait", response_model=models.JobView)
async def wait(
    context: TheContext,
    caller: Reader,
    request: Request,
    job_id: JobId,
    seconds: Annotated[
        float, Query(ge=0, description="How long at most; the server has a limit of its own.")
    ] = 30.0,
) -> Response:
    """Wait until the job has ended, and answer with it as it is then; or as it is when the time is up."""
    # Without the payload: a hundred polls would hold it a hundred times until they end.
    outline = await outline_for(context, caller, "read", job_id)
    if not JobState(outline.state).ended:
        await context.waits.end_of(job_id, min(seconds, context.config.limits.wait_seconds_max))
        caller = await request.state.who()  # a user of the app around may have lost the queue meanwhile
    await take_room(context, caller, request)
    return as_json(models.view(await job_for(context, caller, "read", job_id, confirmed=True)))


@router.get("/jobs/{job_id}/ledger")
async def ledger_of(
    context: TheContext,
    caller: Reader,
    request: Request,
    job_id: JobId,
    before: BeforeToken = None,
    most: PageSize = 100,
) -> list[models.LedgerEntryView]:
    """How the last leases of the job ended, oldest first; for those before them, ask with `before`."""
    await outline_for(context, caller, "read", job_id)
    await take_room(context, caller, request)
    return models.entries(
        await context.run(calls.history(job_id, None if before is None else int(before), most))
    )


@router.get("/jobs/{job_id}/timeline")
async def timeline_of(
    context: TheContext, caller: Reader, request: Request, job_id: JobId, most: PageSize = 100
) -> list[models.TimelineMoment]:
    """The last leases and refused writes of the job, in the order in which they happened."""
    await take_room(context, caller, request)
    job = await job_for(context, caller, "read", job_id)
    ended = await context.run(calls.history(job_id, most=most))
    refused = await context.run(calls.refusals(job_id))
    return models.timeline(job, ended, refused)


@router.get("/jobs/{job_id}/refusals")
async def refusals_of(context: TheContext, caller: Reader, job_id: JobId) -> list[models.RefusedWrite]:
    """The late writes of the job that were refused."""
    await outline_for(context, caller, "read", job_id)
    return models.refused_writes(await context.run(calls.refusals(job_id)))
