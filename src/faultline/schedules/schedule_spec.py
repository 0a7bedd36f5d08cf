"""ScheduleSpec: one schedule in an app's code; and the numbers of a release."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, get_args

from faultline.bounds import TASK_CHARS_MAX, check_task_name
from faultline.errors import BadName, ConfigError, OutOfBounds
from faultline.job import NewJob
from faultline.schedules.cron import Cron
from faultline.schedules.timing import At, Every
from faultline.text.durations import format_duration
from faultline.text.suggest import did_you_mean

Missed = Literal["skip", "once", "all"]
Overlap = Literal["allow", "skip", "cancel"]

JITTER_MAX: Final = timedelta(days=1)
RELEASE_NUMBERS_MAX: Final = 8
_RELEASE: Final = re.compile(r"v?\d{1,9}(\.\d{1,9})*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """A schedule: its name, its times, its job, and what happens to times that were missed or overlap."""

    name: str
    timing: Cron | Every | At
    new: Callable[[], NewJob]
    """Makes its job, once all of the app is loaded: middleware may be registered later than the task."""
    missed: Missed = "once"
    overlap: Overlap = "allow"
    jitter: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        check_schedule_name(self.name)
        _check_choice("missed", self.missed, get_args(Missed))
        _check_choice("overlap", self.overlap, get_args(Overlap))
        if not isinstance(self.jitter, timedelta) or not timedelta(0) <= self.jitter <= JITTER_MAX:
            shown = (
                format_duration(self.jitter) if isinstance(self.jitter, timedelta) else repr(self.jitter)[:60]
            )
            raise OutOfBounds(f"jitter is a timedelta from 0s to 1d; got {shown}")

    def document(self) -> dict[str, Any]:
        """What the database is told of it."""
        job = self.new()
        for option in ("key", "run_at", "delay"):
            if getattr(job, option) is not None:
                raise ConfigError(
                    f"schedule {self.name}: its jobs cannot have the option {option}; the schedule says when "
                    "they run, and each occurrence is enqueued once"
                )
        told: dict[str, Any] = {
            "name": self.name,
            "task": job.task,
            "args": job.args,
            "queue": job.queue,
            "priority": job.priority,
            "max_attempts": job.max_attempts,
            "lease_for": _interval(job.lease_for),
            "timeout": _interval(job.timeout),
            "retry": None if job.retry is None else json.loads(job.retry),
            "missed": self.missed,
            "overlap": self.overlap,
            "jitter": _interval(self.jitter),
            **timing_document(self.timing),
        }
        return {name: value for name, value in told.items() if value is not None}


def timing_document(timing: Cron | Every | At) -> dict[str, Any]:
    """The times of a schedule as the database keeps them."""
    if isinstance(timing, Cron):
        return {"cron": timing.text, "time_zone": timing.time_zone}
    if isinstance(timing, Every):
        start = timing.starts_at
        return {"every": _interval(timing.period), "starts_at": None if start is None else start.isoformat()}
    return {"at": timing.moment.isoformat()}


def check_schedule_name(name: str) -> str:
    """A schedule's name: 1 to 128 letters, digits, `_ . -`; as that of a task.

    >>> check_schedule_name("nightly report")
    Traceback (most recent call last):
    faultline.errors.BadName: 'nightly report' cannot be a schedule name: use 1 to 128 of A-Z a-z 0-9 _ . - \
and start with a letter, a digit or _
    """
    return _check_like_a_task("schedule", name)


def check_app_name(name: str) -> str:
    """An app's name, by the same rule."""
    return _check_like_a_task("app", name)


def _check_like_a_task(kind: str, name: str) -> str:
    try:
        return check_task_name(name)
    except BadName:
        raise BadName(
            f"{str(name)[:60]!a} cannot be {'an' if kind == 'app' else 'a'} {kind} name: use 1 to "
            f"{TASK_CHARS_MAX} of A-Z a-z 0-9 _ . - and start with a letter, a digit or _"
        ) from None


def release_numbers(release: str | int | None) -> list[int]:
    """The numbers of a release, which are compared one by one; none for None.

    >>> release_numbers("1.10.0") > release_numbers("1.9")
    True
    """
    if release is None:
        return []
    if isinstance(release, bool) or not isinstance(release, int | str):
        raise ConfigError(f"a release is a number or a text such as '1.10.2'; got {release!r:.60}")
    text = str(release).strip()
    numbers = [int(part) for part in text.removeprefix("v").split(".")] if _RELEASE.fullmatch(text) else []
    if not numbers or len(numbers) > RELEASE_NUMBERS_MAX:
        raise ConfigError(
            f"{text[:60]!a} is not a release: it has 1 to {RELEASE_NUMBERS_MAX} numbers of at most 9 digits, "
            "with dots between them, such as 1.10.2 or 20260731, so that a higher one is known to be newer"
        )
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers or [0]


def _check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        hint = did_you_mean(str(value), known) or "."
        raise OutOfBounds(
            f"{option} is {', '.join(known[:-1])} or {known[-1]}; got {str(value)[:40]!a}{hint}"
        )


def _interval(duration: timedelta | None) -> str | None:
    return None if duration is None else f"{duration // timedelta(microseconds=1)} microseconds"
