"""Moments of wall-clock times: what a daylight saving change skips, and what it repeats."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

SECOND: Final = timedelta(seconds=1)
AHEAD: Final = timedelta(days=2)
"""No zone changes its offset twice within so long, and no change is over a day."""

HORIZON: Final = timedelta(days=50 * 366)
"""How far a search goes: a leap day on a given weekday comes again within 40 years."""

Walk = Callable[[datetime], datetime | None]
"""The first wall-clock time that fits, after a given one; both are naive."""


def next_fixed(walk: Walk, after: datetime, zone: tzinfo) -> datetime | None:
    """The next moment of fixed times of the day, after a whole second in UTC.

    A time that a change skips comes at the end of the gap, and one that it repeats comes the first time.
    """
    wall: datetime | None = after.astimezone(zone).replace(tzinfo=None)
    while wall is not None and (wall := walk(wall)) is not None:
        moment = first_moment(wall, zone)
        if moment > after:  # not so in the second pass of a repeated hour, and for a second time in one gap
            return moment
    return None


def next_repeated(walk: Walk, after: datetime, zone: tzinfo) -> datetime | None:
    """The next moment of times with a wildcard: skipped ones do not come, and repeated ones come twice.

    Between two changes of the offset, wall clock and UTC go together: one such stretch is searched at a time.
    None when there is none up to the horizon: each of its times may lie in the hour that a change skips.
    """
    end = after + HORIZON
    start, wall = after, _wall(after, zone)
    while True:
        offset = _offset(start, zone)
        change = _next_change(start, zone)
        found = walk(wall)
        if found is None:
            return None
        moment = (found - offset).replace(tzinfo=UTC)
        if moment > end:
            return None
        if moment < (change or start + AHEAD):
            return moment
        if change is not None:
            start, wall = change, _wall(change, zone) - SECOND
        else:
            # Nothing fits up to there, whatever the clocks do meanwhile.
            start = max(moment - AHEAD, start + SECOND)
            wall = _wall(start, zone)


def first_moment(wall: datetime, zone: tzinfo) -> datetime:
    """When the wall clock first shows this time; the end of the gap where it never does."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if _wall(moment, zone) == wall:
        return moment
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _change_between(before, moment, zone)


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def _next_change(start: datetime, zone: tzinfo) -> datetime | None:
    """The first moment with another offset, within AHEAD."""
    end = start + AHEAD
    if _offset(start, zone) == _offset(end, zone):
        return None
    return _change_between(start, end, zone)


def _change_between(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """By halves: the offset at `low` is another than at `high`."""
    before = _offset(low, zone)
    seconds = int((high - low).total_seconds())
    first, last = 0, seconds
    while last - first > 1:
        middle = (first + last) // 2
        if _offset(low + middle * SECOND, zone) == before:
            first = middle
        else:
            last = middle
    return low + last * SECOND
