"""`@app.schedule`: a schedule of a task, in an app's code."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from faultline.client.task_client import Task
from faultline.errors import ConfigError
from faultline.schedules.cron import Cron
from faultline.schedules.schedule_spec import Missed, Overlap, ScheduleSpec
from faultline.schedules.timing import At, Every, timing_of
from faultline.task import Registry

T = TypeVar("T", bound=Task[..., Any])

When = str | timedelta | datetime | Cron | Every | At
"""`"0 3 * * *"`, `every(minutes=5)` or `at(moment)`; a timedelta is a period, a datetime a moment."""

NO_JITTER: Final = timedelta(0)


def spec_for(
    task: Task[..., Any],
    when: When,
    *,
    name: str | None = None,
    tz: str | None = None,
    args: Mapping[str, Any] | None = None,
    missed: Missed = "once",
    overlap: Overlap = "allow",
    jitter: timedelta = NO_JITTER,
) -> ScheduleSpec:
    """A schedule of a task, checked: its times, and the arguments of its jobs."""
    if not isinstance(task, Task):
        raise ConfigError(
            f"a schedule is of a task, not of {task!r:.80}; write @app.schedule above @app.task"
        )
    given = dict(args or {})
    task.spec.codec.encode((), given)
    return ScheduleSpec(
        name=task.name if name is None else name,
        timing=timing_of(when, tz),
        new=lambda: task.new(**given),
        missed=missed,
        overlap=overlap,
        jitter=jitter,
    )


def scheduled(registry: Registry, when: When, options: Mapping[str, Any]) -> Callable[[T], T]:
    """Register a schedule of the task below, and give that task back."""

    def register(task: T) -> T:
        registry.add_schedule(spec_for(task, when, **options))
        return task

    return register
