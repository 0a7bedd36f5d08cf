"""What an operator does to one job: cancel, retry, replay. Each act is noted with who and why."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response
from pydantic import ConfigDict, Field

from faultline.access import Caller
from faultline.api import models
from faultline.api.desk import Desk
from faultline.api.needs import JobId, Operator, TheDesk, as_json, job_for, outline_for
from faultline.store import calls
from faultline.store.call import Call

router = APIRouter(tags=["operate"])


class Why(models.Model):
    """Why somebody does this; it is noted."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(default=None, max_length=1_000)


AReason = Annotated[Why | None, Body()]


async def act(desk: Desk, caller: Caller, job_id: int, why: Why | None, call: Call[Any]) -> Response:
    """Do one thing to a job that the caller may operate on, and answer with the job as it is then.

    Its payload is for keys that may read: to operate on jobs one need not see what is in them.
    """
    await outline_for(desk, caller, "operate", job_id)
    reason = None if why is None else why.reason
    async with desk.acting(caller, reason) as store:
        queue = await store.run(call)
    if queue is not None:
        await desk.sender.ahint(queue)
    job = await job_for(desk, caller, "operate", job_id)
    return as_json(models.view(job) if caller.may("read", job.queue) else models.bare_view(job))


@router.post("/jobs/{job_id}/cancel", response_model=models.JobView)
async def cancel(desk: TheDesk, caller: Operator, job_id: JobId, why: AReason = None) -> Response:
    """End the job for good; a running one is stopped, and nothing it does can commit any more."""
    ended = await act(desk, caller, job_id, why, calls.cancel(job_id, None if why is None else why.reason))
    await desk.tell_cancelled([job_id])
    return ended


@router.post("/jobs/{job_id}/retry", response_model=models.JobView)
async def retry(desk: TheDesk, caller: Operator, job_id: JobId, why: AReason = None) -> Response:
    """Do not wait for the job's moment: it is due now."""
    return await act(desk, caller, job_id, why, calls.retry_now(job_id))


@router.post("/jobs/{job_id}/replay", response_model=models.JobView)
async def replay(desk: TheDesk, caller: Operator, job_id: JobId, why: AReason = None) -> Response:
    """Give a dead job all its attempts again."""
    return await act(desk, caller, job_id, why, calls.replay(job_id))
