"""Which occurrences of a due schedule are enqueued, and when it is due next. Pure."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from faultline.errors import InputError
from faultline.schedules import Cron, Timing, timing_from
from faultline.schedules.zones import known_zone
from faultline.store.rows import DueSchedule

MISSED_AFTER: Final = timedelta(minutes=1)
"""An occurrence older than this was missed: no watchdog ran at its time. Younger ones are all enqueued."""

MADE_UP_MAX: Final = 100
"""The bound on missed occurrences that `all` enqueues, the oldest ones."""

_MICROSECOND: Final = timedelta(microseconds=1)


def firing_of(due: DueSchedule) -> dict[str, Any]:
    """What the database is asked to do for a due schedule.

    Where its next time cannot be computed, the time that is due is enqueued all the same, and the reason is
    noted: it was computed while its expression and its time zone were known.
    """
    assert due.next_at is not None
    told: dict[str, Any] = {"name": due.name, "revision": due.revision, "due": due.next_at.isoformat()}
    try:
        timing = timing_of_row(due)
        late, first = _missed(due.next_at, due.moment, due.missed, timing)
        on_time, following = _due_by(due.moment, first, timing)
    except Exception as error:  # whatever is wrong with one schedule stays with it
        was_missed = due.next_at < due.moment - MISSED_AFTER and due.missed == "skip"
        late, on_time, following = [], [] if was_missed else [due.next_at], None
        told["error"] = _reason(error)
    return {
        **told,
        "late": [at.isoformat() for at in late],
        "on_time": [at.isoformat() for at in on_time],
        "next": None if following is None else following.isoformat(),
        "ended": following is None and "error" not in told,
    }


def next_of(due: DueSchedule) -> dict[str, Any]:
    """The next time of a schedule that has none yet, or why it cannot be computed."""
    told: dict[str, Any] = {"name": due.name, "revision": due.revision}
    try:
        after = due.moment if due.last_at is None else max(due.moment, due.last_at)
        following = timing_of_row(due).next_after(after)
    except Exception as error:
        return {**told, "error": _reason(error)}
    return {**told, "next": None if following is None else following.isoformat(), "ended": following is None}


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    return f"its next time cannot be computed: {type(error).__name__}: {error}"


def timing_of_row(due: DueSchedule) -> Timing:
    """The times of a row; raises OutOfBounds for a text that is no cron expression, or no time zone."""
    if due.cron is not None:
        known_zone(due.time_zone or "UTC")  # refused without a suggestion: those are for people who type
        return _cron(due.cron, due.time_zone or "UTC")
    return timing_from(None, None, due.every, due.at, due.starts_at)


@lru_cache(maxsize=4096)
def _cron(text: str, time_zone: str) -> Cron:
    return Cron(text, time_zone)


def _missed(
    first: datetime, moment: datetime, policy: str, timing: Timing
) -> tuple[list[datetime], datetime | None]:
    """The missed occurrences to make up for, and the first one that was not missed."""
    since = moment - MISSED_AFTER
    if first >= since:
        return [], first
    made_up: list[datetime] = []
    if policy == "once":
        made_up = [first]
    elif policy == "all":
        at: datetime | None = first
        while at is not None and at < since and len(made_up) < MADE_UP_MAX:
            made_up.append(at)
            at = timing.next_after(at)
    return made_up, timing.next_after(since - _MICROSECOND)


def _due_by(
    moment: datetime, first: datetime | None, timing: Timing
) -> tuple[list[datetime], datetime | None]:
    """The occurrences up to a moment, and the one after them."""
    due: list[datetime] = []
    while first is not None and first <= moment:
        due.append(first)
        first = timing.next_after(first)
    return due, first
