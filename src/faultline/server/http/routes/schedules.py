"""Schedules: list them, look at one, its next times, and the times it was due."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, Field

from faultline.bounds import TASK_CHARS_MAX
from faultline.errors import OutOfBounds
from faultline.schedules import ScheduleInfo
from faultline.schedules.ranges import coming_times
from faultline.server.auth import Caller
from faultline.server.http import models
from faultline.server.http.api_context import ApiContext
from faultline.server.http.dependencies import NAME, JobId, PageSize, Reader, TheContext, outline_for
from faultline.server.limits import PAGE_MAX
from faultline.server.problems import NO_SUCH_SCHEDULE, RequestRefused
from faultline.store import calls
from faultline.text.suggest import did_you_mean

router = APIRouter(tags=["schedules"])

TIMES_MAX = 100
NAMES_COMPARED = 1_000

ScheduleName = Annotated[str, Path(min_length=1, max_length=TASK_CHARS_MAX, pattern=NAME)]
AfterSchedule = Annotated[
    str | None, Query(max_length=TASK_CHARS_MAX, description="The last schedule of the page before.")
]
Count = Annotated[int, Query(ge=1, le=TIMES_MAX)]


class ScheduleOutline(models.Model):
    """A schedule in a list: without its args."""

    name: str
    state: str = Field(description="active, paused, failing or ended.")
    when: str = Field(description="Its times in a few words.")
    app: str | None = Field(description="The app from whose code it is; null: made by hand.")
    release: str | None
    task: str
    queue: str
    priority: int
    max_attempts: int
    lease_for: timedelta | None
    timeout: timedelta | None
    cron: str | None
    time_zone: str | None
    every: timedelta | None
    at: datetime | None
    starts_at: datetime
    jitter: timedelta
    missed: str
    overlap: str
    next_at: datetime | None
    last_at: datetime | None
    last_job: int | None
    error: str | None
    paused_by: str | None
    created_at: datetime
    changed_at: datetime


class ScheduleView(ScheduleOutline):
    """A schedule with all that is known of it."""

    args: str | None = Field(description="As JSON text; null for a caller that may not read.")


class OccurrenceView(models.Model):
    """A time at which a schedule was due, with its job."""

    at: datetime
    how: str = Field(description="due, missed, triggered, backfilled, or skipped: then it has no job.")
    job_id: int | None
    state: str | None
    decided_at: datetime


class JobOccurrence(OccurrenceView):
    """The occurrence that a job was made for."""

    schedule: str


async def visible_schedule(
    context: ApiContext, caller: Caller, name: str, scope: str = "read"
) -> ScheduleInfo:
    """The schedule; one of a queue that the caller may not see is answered like a missing one."""
    for found in await context.run(calls.list_schedules(name)):
        if caller.may(scope, found.queue):
            return found
    queues = None if caller.queues is None else sorted(caller.queues)
    known = await context.run(calls.list_schedules(None, None, NAMES_COMPARED, queues))
    better = did_you_mean(name, [schedule.name for schedule in known]) or "."
    raise RequestRefused(NO_SUCH_SCHEDULE, f"there is no schedule {name}{better}")


def schedule_view(found: ScheduleInfo, caller: Caller) -> ScheduleView:
    """The schedule as it is sent: its args are for callers that may read."""
    view = ScheduleView.model_validate(found)
    return view if caller.may("read", found.queue) else view.model_copy(update={"args": None})


@router.get("/schedules")
async def list_schedules(
    context: TheContext, caller: Reader, after: AfterSchedule = None, most: PageSize = PAGE_MAX
) -> list[ScheduleOutline]:
    """Schedules by name, of the queues that the caller may see."""
    queues = None if caller.queues is None else sorted(caller.queues)
    found = await context.run(calls.list_schedules(None, after, most, queues))
    return [ScheduleOutline.model_validate(schedule) for schedule in found]


@router.get("/schedules/{schedule}")
async def get_schedule(context: TheContext, caller: Reader, schedule: ScheduleName) -> ScheduleView:
    """One schedule."""
    return schedule_view(await visible_schedule(context, caller, schedule), caller)


@router.get("/schedules/{schedule}/next")
async def next_times(
    context: TheContext, caller: Reader, schedule: ScheduleName, count: Count = 5
) -> list[datetime]:
    """When it will be due: nothing while it is paused, has ended, or its times cannot be computed."""
    found = await visible_schedule(context, caller, schedule)
    try:
        return coming_times(found, count)
    except OutOfBounds:
        return []


@router.get("/schedules/{schedule}/occurrences")
async def list_occurrences(
    context: TheContext,
    caller: Reader,
    schedule: ScheduleName,
    before: Annotated[AwareDatetime | None, Query(description="The last `at` of the page before.")] = None,
    most: PageSize = PAGE_MAX,
) -> list[OccurrenceView]:
    """The times at which it was due, newest first, with their jobs."""
    await visible_schedule(context, caller, schedule)
    found: list[Any] = await context.run(calls.list_occurrences(schedule, before, most))
    return [OccurrenceView.model_validate(one) for one in found]


@router.get("/jobs/{job_id}/occurrence")
async def occurrence_of(context: TheContext, caller: Reader, job_id: JobId) -> JobOccurrence | None:
    """The schedule and the time that the job was made for; null for a job of no schedule."""
    outline = await outline_for(context, caller, "read", job_id)
    for found in await context.run(calls.occurrence_of(job_id)):
        return JobOccurrence.model_validate({**found._asdict(), "state": outline.state})
    return None
