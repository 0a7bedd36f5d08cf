"""Jobs: submit, get, wait, list; what became of their leases."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from faultline.api import models
from faultline.api.needs import (
    AQueue,
    ATask,
    Cursor,
    JobId,
    PageSize,
    Producer,
    Reader,
    TheDesk,
    as_json,
    cursor_id,
    job_for,
    next_cursor,
    outline_for,
    queues_of,
)
from faultline.api.submit import submit_many
from faultline.job import JobState
from faultline.store import calls

router = APIRouter(tags=["jobs"])

_KEY: dict[str, Any] = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "Two submits with one key are one job; the same as the field `key`, in UTF-8.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}  # fmt: skip


def _takes(name: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_WAS_THERE: dict[int | str, dict[str, Any]] = {
    200: {"model": models.Submitted, "description": "The key names a job that was there already."}
}


@router.post(
    "/jobs",
    status_code=201,
    response_model=models.Submitted,
    responses=_WAS_THERE,
    openapi_extra={**_takes("Submission"), "parameters": [_KEY]},
)
async def submit() -> Response:
    """Put one job in its queue; it is durable when this answers."""
    raise AssertionError("the gate answers this one itself: see submit_one")


@router.post("/jobs/batch", status_code=201, openapi_extra=_takes("Batch"))
async def submit_batch(desk: TheDesk, caller: Producer, request: Request) -> models.SubmittedMany:
    """Put many jobs in their queues, all of them or none."""
    return models.SubmittedMany(ids=await submit_many(desk, caller, await request.body(), request.state.who))


@router.get("/jobs")
async def list_jobs(
    desk: TheDesk,
    caller: Reader,
    state: Annotated[list[JobState] | None, Query(max_length=6)] = None,
    queue: AQueue = None,
    task: ATask = None,
    key: Annotated[str | None, Query(min_length=1, max_length=255)] = None,
    cursor: Cursor = None,
    most: PageSize = 50,
) -> models.JobPage:
    """List jobs, newest first, without their args and results."""
    found = await desk.run(
        calls.find_jobs(state, queues_of(caller, "read", queue), task, key, cursor_id(cursor), most)
    )
    return models.JobPage(jobs=models.outlines(found), next=next_cursor(found, most))


@router.get("/jobs/{job_id}", response_model=models.JobView)
async def get_job(desk: TheDesk, caller: Reader, job_id: JobId) -> Response:
    """One job with its args and, once it succeeded, its result."""
    return as_json(models.view(await job_for(desk, caller, "read", job_id)))


@router.get("/jobs/{job_id}/wait", response_model=models.JobView)
async def wait(
    desk: TheDesk,
    caller: Reader,
    job_id: JobId,
    seconds: Annotated[
        float, Query(ge=0, description="How long at most; the server has a limit of its own.")
    ] = 30.0,
) -> Response:
    """Wait until the job has ended, and answer with it as it is then; or as it is when the time is up."""
    # Without the payload: a hundred polls would hold it a hundred times for as long as they last.
    outline = await outline_for(desk, caller, "read", job_id)
    if not JobState(outline.state).ended:
        await desk.waits.end_of(job_id, min(seconds, desk.config.limits.wait_seconds_max))
    return as_json(models.view(await job_for(desk, caller, "read", job_id, confirmed=True)))


@router.get("/jobs/{job_id}/ledger")
async def ledger_of(desk: TheDesk, caller: Reader, job_id: JobId) -> list[models.Entry]:
    """How each lease of the job ended, oldest first."""
    await outline_for(desk, caller, "read", job_id)
    return models.entries(await desk.run(calls.history(job_id)))


@router.get("/jobs/{job_id}/timeline")
async def timeline_of(desk: TheDesk, caller: Reader, job_id: JobId) -> list[models.Moment]:
    """Every lease and every refused write of the job, in the order in which they happened."""
    job = await job_for(desk, caller, "read", job_id)
    ended = await desk.run(calls.history(job_id))
    refused = await desk.run(calls.refusals(job_id))
    return models.timeline(job, ended, refused)


@router.get("/jobs/{job_id}/refusals")
async def refusals_of(desk: TheDesk, caller: Reader, job_id: JobId) -> list[models.RefusedWrite]:
    """The late writes of the job that were refused."""
    await outline_for(desk, caller, "read", job_id)
    return models.refused_writes(await desk.run(calls.refusals(job_id)))
