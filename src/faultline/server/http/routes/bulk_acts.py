"""Bulk acts: one act on all jobs that fit a filter. First the count, then the act with the same count."""

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field, StringConstraints

from faultline.bounds import QUEUE_CHARS_MAX, TASK_CHARS_MAX
from faultline.job import JobState
from faultline.server.auth import Caller
from faultline.server.http import models
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import NAME, Operator, TheContext, queues_of
from faultline.server.problems import COUNT_CHANGED, RequestRefused
from faultline.store import calls

router = APIRouter(tags=["operate"])

BATCH_JOBS = 500
ONES_STATES: dict[str, list[str]] = {
    "cancel": ["queued", "running"], "retry": ["queued"], "replay": ["dead"],
}  # fmt: skip
"""Which jobs each act is for."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
Queue = Annotated[str, StringConstraints(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]


class BulkRequest(models.Model):
    """What to do, and to which jobs."""

    model_config = ConfigDict(extra="forbid")

    act: Literal["cancel", "retry", "replay"]
    queue: Queue | None = None
    task: Name | None = None


class BulkPreview(models.Model):
    """How many jobs it would be."""

    count: int
    capped: bool = Field(description="True when there are more than are counted, or done in one request.")


class ConfirmedBulkRequest(BulkRequest):
    """A bulk act with the count that was seen."""

    confirm: int = Field(
        ge=0, description="The count of the preview. If it is another by now, nothing is done."
    )
    reason: str | None = Field(default=None, max_length=1_000)


class BulkOutcome(models.Model):
    """What became of it."""

    done: int
    refused: int = Field(description="Those that were in another state when their turn came.")


@router.post("/jobs/bulk/preview")
async def preview(context: TheContext, caller: Operator, wanted: BulkRequest) -> BulkPreview:
    """Count the jobs that an act by this filter would be for; nothing is done."""
    most = context.config.limits.bulk_jobs_max
    count = await _count(context, caller, wanted)
    return BulkPreview(count=min(count, most), capped=count > most)


@router.post("/jobs/bulk")
async def bulk(context: TheContext, caller: Operator, wanted: ConfirmedBulkRequest) -> BulkOutcome:
    """Do it to as many jobs as were confirmed, the newest first; each act is noted."""
    most = context.config.limits.bulk_jobs_max
    count = min(await _count(context, caller, wanted), most)
    if count != wanted.confirm:
        raise RequestRefused(COUNT_CHANGED, f"{count} fit now, {wanted.confirm} were confirmed")
    done = refused = 0
    before: int | None = None
    queues = queues_of(caller, "operate", wanted.queue)
    woken: set[str] = set()
    while done + refused < count:
        room = min(BATCH_JOBS, count - done - refused)
        page = await context.run(
            calls.find_jobs(ONES_STATES[wanted.act], queues, wanted.task, None, before, room)
        )
        if not page:
            break
        before = page[-1].id
        async with context.acting(caller, wanted.reason) as store:
            answers = await store.run(calls.for_each(wanted.act, [job.id for job in page], wanted.reason))
        if wanted.act == "cancel":
            ran = {job.id for job in page if job.state == JobState.RUNNING}
            await context.tell_cancelled([one.id for one in answers if one.done and one.id in ran])
        done += sum(one.done for one in answers)
        refused += sum(not one.done for one in answers)
        woken |= {one.queue for one in answers if one.queue is not None}
    for queue in woken:
        await context.sender.ahint(queue)
    return BulkOutcome(done=done, refused=refused)


async def _count(context: ApiContext, caller: Caller, wanted: BulkRequest) -> int:
    queues = queues_of(caller, "operate", wanted.queue)
    most = context.config.limits.bulk_jobs_max + 1
    return await context.run(calls.count_jobs(ONES_STATES[wanted.act], queues, wanted.task, most))
