"""A slow reference of cron times: every minute of the wall clock, one after the other."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

MINUTE = timedelta(minutes=1)

ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Lisbon", "Europe/Moscow", "Europe/Chisinau",
    "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Havana", "America/Santiago",
    "America/Asuncion", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Jerusalem",
    "Asia/Kathmandu", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Auckland", "Pacific/Chatham",
)  # fmt: skip
"""Zones whose clocks change by an hour, by half an hour, at midnight, at other moments, or never."""

FIXED = ("30 2 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 3 * * 0", "59 23 * * *", "30 0 * * *")
WILD = ("*/30 2 * * *", "0 * * * *", "*/15 0,1 * * *", "*/20 * * * 0", "5 */2 * * *", "*/45 23 * * *")


def changes(zone: str, year: int = 2027) -> list[datetime]:
    """The moments of a year, to the hour, before which the zone has another offset."""
    there = ZoneInfo(zone)
    moments = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(366 * 24)]
    offsets = [moment.astimezone(there).utcoffset() for moment in moments]
    return [moment for moment, one, next_ in zip(moments, offsets, offsets[1:], strict=False) if one != next_]


@lru_cache
def fields(expression: str) -> CronSim:
    return CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 - a wall-clock time


def fits(expression: str, wall: datetime) -> bool:
    """Whether each field of an expression has this minute."""
    read = fields(expression)
    return (
        wall.minute in read.minutes
        and wall.hour in read.hours
        and wall.month in read.months
        and read.match_day(wall.date())
    )


def wildcards(expression: str, zone: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """Every minute at which the wall clock fits: none in a gap, twice where the hour is repeated."""
    there, moment = ZoneInfo(zone), start
    while moment < end:
        if fits(expression, moment.astimezone(there).replace(tzinfo=None)):
            yield moment
        moment += MINUTE


def fixed(expression: str, zone: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """Every minute of the calendar that fits: at the first moment when the wall clock shows it or more.

    The wall clock never shows a minute in the gap: the first moment that shows more is the gap's end.
    """
    there, last = ZoneInfo(zone), None
    shown: dict[datetime, datetime] = {}
    moment = start - timedelta(days=1)
    latest = datetime.min  # noqa: DTZ901 - a wall-clock time
    while moment < end:
        wall = moment.astimezone(there).replace(tzinfo=None)
        if wall > latest:
            missed = wall - MINUTE if latest.year == 1 else latest
            while missed < wall:
                missed += MINUTE
                shown.setdefault(missed, moment)
            latest = wall
        moment += MINUTE
    for wall, when in sorted(shown.items()):
        if start <= when != last and fits(expression, wall):
            last = when
            yield when
