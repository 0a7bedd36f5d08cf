"""The times of a schedule in a range, with a bound."""

from datetime import datetime, timedelta
from typing import Final

from faultline.bounds import check_run_at
from faultline.errors import OutOfBounds
from faultline.schedules.schedule_info import ScheduleInfo
from faultline.schedules.timing import Timing

BACKFILL_MAX: Final = 1_000
NEXT_MAX: Final = 1_000

_MICROSECOND: Final = timedelta(microseconds=1)


def next_times(timing: Timing, after: datetime, count: int) -> list[datetime]:
    """The next times after a moment, so many at most.

    >>> from faultline.schedules import Cron
    >>> next_times(Cron("0 3 * * *"), datetime.fromisoformat("2026-01-01T00:00Z"), 2)[1].day
    2
    """
    if not 1 <= count <= NEXT_MAX:
        raise OutOfBounds(f"so many times at once: 1 to {NEXT_MAX}; got {count}")
    found: list[datetime] = []
    following = timing.next_after(after)
    while following is not None and len(found) < count:
        found.append(following)
        following = timing.next_after(following)
    return found


def coming_times(schedule: ScheduleInfo, count: int) -> list[datetime]:
    """When a schedule will be due: none while it is paused or has ended."""
    if schedule.state in ("paused", "ended"):
        return []
    if schedule.next_at is None:
        return next_times(schedule.timing, schedule.moment, count)
    more = next_times(schedule.timing, schedule.next_at, count)
    return [schedule.next_at, *more][:count]


def past_times(schedule: ScheduleInfo, since: datetime, until: datetime | None = None) -> list[datetime]:
    """The times of a backfill: from `since` until before `until`, as far as they have passed."""
    for name, moment in ("since", since), ("until", until):
        if moment is not None:
            check_run_at(moment, name)
    end = min(filter(None, (schedule.moment, schedule.next_at, until)))
    found: list[datetime] = []
    following = schedule.timing.next_after(since - _MICROSECOND)
    while following is not None and following < end:
        if len(found) == BACKFILL_MAX:
            raise OutOfBounds(
                f"a backfill makes at most {BACKFILL_MAX:,} jobs at once, and {schedule.name} has more times "
                f"in this range. Nothing was done. End it at {following.isoformat()}, and go on from there"
            )
        found.append(following)
        following = schedule.timing.next_after(following)
    return found
