"""Acts on schedules: set, delete, pause, resume, trigger, backfill; recorded with caller and reason."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints

from faultline import bounds
from faultline.args import encode_result
from faultline.bounds import QUEUE_CHARS_MAX, TASK_CHARS_MAX
from faultline.errors import InputError
from faultline.job import NewJob
from faultline.schedules import ScheduleInfo, ScheduleSpec, timing_of
from faultline.schedules.ranges import past_times
from faultline.server.auth import Caller
from faultline.server.http import models
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import NAME, Operator, TheContext
from faultline.server.http.routes.job_acts import AReason, Why
from faultline.server.http.routes.schedules import (
    ScheduleName,
    ScheduleView,
    schedule_view,
    visible_schedule,
)
from faultline.server.problems import COUNT_CHANGED, RequestRefused
from faultline.store import calls
from faultline.store.call import Call
from faultline.task import MAX_ATTEMPTS, QUEUE

router = APIRouter(tags=["schedules"])

NO_JITTER = timedelta(0)
TaskName = Annotated[str, StringConstraints(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
Queue = Annotated[str, StringConstraints(min_length=1, max_length=QUEUE_CHARS_MAX, pattern=NAME)]


class ScheduleRequest(models.Model):
    """A schedule: its task, and one of cron, every_seconds and at."""

    model_config = ConfigDict(extra="forbid")

    task: TaskName
    args: dict[str, Any] = Field(default_factory=dict)
    cron: str | None = Field(default=None, max_length=200)
    time_zone: str | None = Field(default=None, max_length=100)
    every_seconds: float | None = Field(default=None, ge=1, le=366 * 86_400)
    at: AwareDatetime | None = None
    queue: Queue = QUEUE
    priority: int = Field(default=0, ge=bounds.PRIORITY_MIN, le=bounds.PRIORITY_MAX)
    max_attempts: int = Field(default=MAX_ATTEMPTS, ge=1, le=bounds.ATTEMPTS_MAX)
    missed: str = "once"
    overlap: str = "allow"
    jitter_seconds: float = Field(default=0, ge=0, le=86_400)
    reason: str | None = Field(default=None, max_length=1_000)


class BackfillRange(models.Model):
    """A range of past times."""

    model_config = ConfigDict(extra="forbid")

    since: AwareDatetime
    until: AwareDatetime | None = Field(default=None, description="Before this moment; null: now.")


class ConfirmedBackfill(BackfillRange):
    """A backfill with the count that was seen."""

    confirm: int = Field(
        ge=0, description="The count of new jobs in the preview. If it is another by now, nothing is done."
    )
    reason: str | None = Field(default=None, max_length=1_000)


class BackfillView(models.Model):
    """A past time: its job, and whether the job is new; in a preview, whether it would be."""

    at: datetime
    job_id: int | None
    is_new: bool


class Triggered(models.Model):
    """The job of a trigger."""

    job_id: int
    queue: str


@router.put("/schedules/{schedule}")
async def set_schedule(
    context: TheContext, caller: Operator, schedule: ScheduleName, wanted: ScheduleRequest
) -> ScheduleView:
    """Make a schedule, or change one; needs the scopes operate and enqueue. Code's own are changed there."""
    for scope in ("operate", "enqueue"):
        caller.require(scope, wanted.queue)
    for there in await context.run(calls.list_schedules(schedule)):
        caller.require("operate", there.queue)
    document = spec_of(schedule, wanted).document()
    async with context.acting(caller, wanted.reason) as store:
        await store.run(calls.set_schedule(document))
    return schedule_view(await visible_schedule(context, caller, schedule, "operate"), caller)


def spec_of(name: str, wanted: ScheduleRequest) -> ScheduleSpec:
    """The schedule that was asked for, checked."""
    every = None if wanted.every_seconds is None else timedelta(seconds=wanted.every_seconds)
    times = [time for time in (wanted.cron, every, wanted.at) if time is not None]
    if len(times) != 1:
        raise InputError("a schedule has one of cron, every_seconds and at")
    job = NewJob(
        task=wanted.task, args=encode_result(wanted.args), queue=wanted.queue, priority=wanted.priority,
        max_attempts=wanted.max_attempts,
    )  # fmt: skip
    return ScheduleSpec(
        name=name,
        timing=timing_of(times[0], wanted.time_zone),
        new=lambda: job,
        missed=wanted.missed,  # type: ignore[arg-type]  # checked by the spec, with a suggestion
        overlap=wanted.overlap,  # type: ignore[arg-type]
        jitter=timedelta(seconds=wanted.jitter_seconds),
    )


@router.delete("/schedules/{schedule}", status_code=204)
async def delete_schedule(
    context: TheContext, caller: Operator, schedule: ScheduleName, why: AReason = None
) -> None:
    """Forget it; its jobs stay. One that is in an app's code is made again by its next worker."""
    await _act(context, caller, schedule, why, calls.delete_schedule(schedule))


@router.post("/schedules/{schedule}/pause")
async def pause(
    context: TheContext, caller: Operator, schedule: ScheduleName, why: AReason = None
) -> ScheduleView:
    """Let it enqueue nothing; its jobs go on."""
    await _act(context, caller, schedule, why, calls.pause_schedule(schedule))
    return schedule_view(await visible_schedule(context, caller, schedule, "operate"), caller)


@router.post("/schedules/{schedule}/resume")
async def resume(
    context: TheContext, caller: Operator, schedule: ScheduleName, why: AReason = None
) -> ScheduleView:
    """Let it go on from now; what fell into the pause is not enqueued."""
    await _act(context, caller, schedule, why, calls.resume_schedule(schedule))
    return schedule_view(await visible_schedule(context, caller, schedule, "operate"), caller)


@router.post("/schedules/{schedule}/trigger")
async def trigger(
    context: TheContext, caller: Operator, schedule: ScheduleName, why: AReason = None
) -> Triggered:
    """Enqueue a job of it now, besides its times; also while it is paused."""
    job_id, queue, _ = await _act(context, caller, schedule, why, calls.trigger_schedule(schedule))
    await context.sender.ahint(queue)
    return Triggered(job_id=job_id, queue=queue)


@router.post("/schedules/{schedule}/backfill/preview")
async def preview_backfill(
    context: TheContext, caller: Operator, schedule: ScheduleName, wanted: BackfillRange
) -> list[BackfillView]:
    """The past times of a range, and which of them have a job; nothing is done."""
    found = await visible_schedule(context, caller, schedule, "operate")
    return await _seen(context, found, past_times(found, wanted.since, wanted.until))


@router.post("/schedules/{schedule}/backfill")
async def backfill(
    context: TheContext, caller: Operator, schedule: ScheduleName, wanted: ConfirmedBackfill
) -> list[BackfillView]:
    """Enqueue a job for each past time of a range that has none, if there are as many as were confirmed."""
    found = await visible_schedule(context, caller, schedule, "operate")
    times = past_times(found, wanted.since, wanted.until)
    new = sum(one.is_new for one in await _seen(context, found, times))
    if new != wanted.confirm:
        raise RequestRefused(COUNT_CHANGED, f"{new} have no job now, {wanted.confirm} were confirmed")
    async with context.acting(caller, wanted.reason) as store:
        made = await store.run(calls.backfill(schedule, found.revision, times, preview=False))
    await context.sender.ahint(found.queue)
    return [BackfillView.model_validate(one) for one in made]


async def _seen(context: ApiContext, found: ScheduleInfo, times: list[datetime]) -> list[BackfillView]:
    seen = await context.run(calls.backfill(found.name, found.revision, times, preview=True))
    return [BackfillView.model_validate(one) for one in seen]


async def _act(context: ApiContext, caller: Caller, name: str, why: Why | None, call: Call[Any]) -> Any:
    await visible_schedule(context, caller, name, "operate")
    async with context.acting(caller, None if why is None else why.reason) as store:
        return await store.run(call)
