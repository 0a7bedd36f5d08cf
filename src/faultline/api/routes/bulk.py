"""Bulk: one thing to all jobs that fit a filter. First the count, then the act with that count confirmed."""

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field, StringConstraints

from faultline.access import Caller
from faultline.api import models
from faultline.api.desk import Desk
from faultline.api.needs import NAME, Operator, TheDesk, queues_of
from faultline.api.problems import COUNT_CHANGED, Refused
from faultline.bounds import QUEUE_CHARS_MAX, TASK_CHARS_MAX
from faultline.job import JobState
from faultline.store import calls

router = APIRouter(tags=["operate"])

BATCH_JOBS = 500
ONES_STATES: dict[str, list[str]] = {
    "cancel": ["queued", "running"], "retry": ["queued"], "replay": ["dead"],
}  # fmt: skip
"""Which jobs each act is for."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
Queue = Annotated[str, StringConstraints(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]


class Wish(models.Model):
    """What to do, and to which jobs."""

    model_config = ConfigDict(extra="forbid")

    act: Literal["cancel", "retry", "replay"]
    queue: Queue | None = None
    task: Name | None = None


class Preview(models.Model):
    """How many jobs it would be."""

    count: int
    capped: bool = Field(description="True when there are more than are counted, or done in one request.")


class ConfirmedWish(Wish):
    """A wish whose count was seen."""

    confirm: int = Field(
        ge=0, description="The count of the preview. If it is another by now, nothing is done."
    )
    reason: str | None = Field(default=None, max_length=1_000)


class Outcome(models.Model):
    """What became of it."""

    done: int
    refused: int = Field(description="Those that were in another state when their turn came.")


@router.post("/jobs/bulk/preview")
async def preview(desk: TheDesk, caller: Operator, wish: Wish) -> Preview:
    """Count the jobs that an act by this filter would be for; nothing is done."""
    most = desk.config.limits.bulk_jobs_max
    count = await _count(desk, caller, wish)
    return Preview(count=min(count, most), capped=count > most)


@router.post("/jobs/bulk")
async def bulk(desk: TheDesk, caller: Operator, wish: ConfirmedWish) -> Outcome:
    """Do it to as many jobs as were confirmed, the newest first; each act is noted."""
    most = desk.config.limits.bulk_jobs_max
    count = min(await _count(desk, caller, wish), most)
    if count != wish.confirm:
        raise Refused(COUNT_CHANGED, f"{count} fit now, {wish.confirm} were confirmed")
    done = refused = 0
    before: int | None = None
    queues = queues_of(caller, "operate", wish.queue)
    woken: set[str] = set()
    while done + refused < count:
        room = min(BATCH_JOBS, count - done - refused)
        page = await desk.run(calls.find_jobs(ONES_STATES[wish.act], queues, wish.task, None, before, room))
        if not page:
            break
        before = page[-1].id
        async with desk.acting(caller, wish.reason) as store:
            answers = await store.run(calls.for_each(wish.act, [job.id for job in page], wish.reason))
        if wish.act == "cancel":
            ran = {job.id for job in page if job.state == JobState.RUNNING}
            await desk.tell_cancelled([one.id for one in answers if one.done and one.id in ran])
        done += sum(one.done for one in answers)
        refused += sum(not one.done for one in answers)
        woken |= {one.queue for one in answers if one.queue is not None}
    for queue in woken:
        await desk.sender.ahint(queue)
    return Outcome(done=done, refused=refused)


async def _count(desk: Desk, caller: Caller, wish: Wish) -> int:
    queues = queues_of(caller, "operate", wish.queue)
    most = desk.config.limits.bulk_jobs_max + 1
    return await desk.run(calls.count_jobs(ONES_STATES[wish.act], queues, wish.task, most))
