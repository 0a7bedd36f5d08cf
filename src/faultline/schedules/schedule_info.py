"""ScheduleInfo and Occurrence: a schedule as the database keeps it, and the times it was due."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from faultline.schedules.cron import Cron
from faultline.schedules.timing import At, Every, timing_from
from faultline.text.durations import format_duration


class ScheduleInfo(NamedTuple):
    """A schedule as it stands in the database."""

    name: str
    state: str
    """active, paused, ended, or failing: its next time cannot be computed, or it cannot be fired."""
    app: str | None
    """The app from whose code it is; None: made by hand."""
    release: str | None
    task: str
    queue: str
    priority: int
    args: str | None
    """The arguments of its jobs, as JSON; None in a list."""
    max_attempts: int
    lease_for: timedelta | None
    timeout: timedelta | None
    retry: str | None
    cron: str | None
    time_zone: str | None
    every: timedelta | None
    at: datetime | None
    starts_at: datetime
    jitter: timedelta
    missed: str
    overlap: str
    revision: int
    next_at: datetime | None
    """None where it has ended, or where a watchdog has yet to compute it."""
    last_at: datetime | None
    last_job: int | None
    error: str | None
    paused_by: str | None
    """person, or release: the newest release of its app does not have it."""
    created_at: datetime
    changed_at: datetime
    moment: datetime
    """The database's time of this answer."""

    @property
    def timing(self) -> Cron | Every | At:
        """Its times; raises OutOfBounds where the database holds a text that is no cron expression."""
        return timing_from(self.cron, self.time_zone, self.every, self.at, self.starts_at)

    @property
    def when(self) -> str:
        """Its times in a few words: `0 3 * * * Europe/Berlin`, `every 5m`, `at 2030-01-31T09:00:00+00:00`."""
        if self.cron is not None:
            return self.cron if self.time_zone == "UTC" else f"{self.cron} {self.time_zone}"
        if self.every is not None:
            return f"every {format_duration(self.every)}"
        return f"at {self.at.isoformat()}" if self.at else ""

    def document(self) -> dict[str, Any]:
        """For JSON: every field by its name."""
        return {**self._asdict(), "when": self.when}


class Occurrence(NamedTuple):
    """A time at which a schedule was due, with its job."""

    schedule: str
    at: datetime
    how: str
    """due, missed, triggered, backfilled; skipped where it has no job."""
    job_id: int | None
    state: str | None
    """The state of the job; None where there is none any more, or where it was not asked for."""
    decided_at: datetime


class BackfilledOccurrence(NamedTuple):
    """A time of a backfill: its job, and whether it is new; in a preview, whether it would be."""

    at: datetime
    job_id: int | None
    is_new: bool
