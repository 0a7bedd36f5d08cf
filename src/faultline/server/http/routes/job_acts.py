"""Acts of an operator on one job: cancel, retry, replay. Each act is recorded with caller and reason."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response
from pydantic import ConfigDict, Field

from faultline.server.auth import Caller
from faultline.server.http import models
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import JobId, Operator, TheContext, as_json, job_for, outline_for
from faultline.store import calls
from faultline.store.call import Call

router = APIRouter(tags=["operate"])


class Why(models.Model):
    """The reason of the act; it is recorded."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(default=None, max_length=1_000)


AReason = Annotated[Why | None, Body()]


async def act(context: ApiContext, caller: Caller, job_id: int, why: Why | None, call: Call[Any]) -> Response:
    """Do one act on a job that the caller may operate on, and answer with the job after it.

    The payload is for keys with the scope read: operating on jobs does not need it.
    """
    await outline_for(context, caller, "operate", job_id)
    reason = None if why is None else why.reason
    async with context.acting(caller, reason) as store:
        queue = await store.run(call)
    if queue is not None:
        await context.sender.ahint(queue)
    job = await job_for(context, caller, "operate", job_id)
    return as_json(models.view(job) if caller.may("read", job.queue) else models.bare_view(job))


@router.post("/jobs/{job_id}/cancel", response_model=models.JobView)
async def cancel(context: TheContext, caller: Operator, job_id: JobId, why: AReason = None) -> Response:
    """End the job for good; a running one is stopped, and nothing it does can commit any more."""
    ended = await act(context, caller, job_id, why, calls.cancel(job_id, None if why is None else why.reason))
    await context.tell_cancelled([job_id])
    return ended


@router.post("/jobs/{job_id}/retry", response_model=models.JobView)
async def retry(context: TheContext, caller: Operator, job_id: JobId, why: AReason = None) -> Response:
    """Do not wait for the job's moment: it is due now."""
    return await act(context, caller, job_id, why, calls.retry_now(job_id))


@router.post("/jobs/{job_id}/replay", response_model=models.JobView)
async def replay(context: TheContext, caller: Operator, job_id: JobId, why: AReason = None) -> Response:
    """Give a dead job all its attempts again."""
    return await act(context, caller, job_id, why, calls.replay(job_id))
