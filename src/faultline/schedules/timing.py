"""When a schedule is due: by a cron expression, each period, or once."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, overload

from faultline.bounds import check_run_at
from faultline.errors import InputError, OutOfBounds
from faultline.schedules.cron import Cron
from faultline.text.durations import format_duration

PERIOD_MIN: Final = timedelta(seconds=1)
PERIOD_MAX: Final = timedelta(days=366)


class Timing(Protocol):
    """The times of a schedule: Cron, Every or At."""

    def next_after(self, moment: datetime) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class Every:
    """Times a fixed period apart, counted from `starts_at`; made by `every`.

    >>> start = datetime(2026, 1, 1, tzinfo=UTC)
    >>> Every(timedelta(minutes=5), start).next_after(start).minute
    5
    """

    period: timedelta
    starts_at: datetime | None = None
    """None: the moment at which the schedule is made."""

    def __post_init__(self) -> None:
        if not isinstance(self.period, timedelta):
            raise OutOfBounds(f"a period is a timedelta, or every(minutes=5); got {self.period!r:.60}")
        if not PERIOD_MIN <= self.period <= PERIOD_MAX:
            raise OutOfBounds(f"a period goes from 1s to 366d; got {format_duration(self.period)}")
        if self.starts_at is not None:
            check_run_at(self.starts_at)

    def next_after(self, moment: datetime) -> datetime | None:
        """The first multiple of the period after a moment."""
        if self.starts_at is None:
            return moment + self.period
        start = self.starts_at.astimezone(UTC)
        return start + self.period * ((moment - start) // self.period + 1)


@dataclass(frozen=True, slots=True)
class At:
    """One moment; made by `at`.

    >>> At(datetime(2030, 1, 1, tzinfo=UTC)).next_after(datetime(2030, 1, 1, tzinfo=UTC)) is None
    True
    """

    moment: datetime

    def __post_init__(self) -> None:
        check_run_at(self.moment)

    def next_after(self, moment: datetime) -> datetime | None:
        """The moment, unless it has passed."""
        return self.moment.astimezone(UTC) if self.moment > moment else None


@overload
def every(period: timedelta, /, *, starts_at: datetime | None = None) -> Every: ...
@overload
def every(
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    starts_at: datetime | None = None,
) -> Every: ...


def every(
    period: timedelta | None = None,
    /,
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    starts_at: datetime | None = None,
) -> Every:
    """A schedule with a fixed period, from a second to 366 days.

    It is counted from `starts_at`, by default the moment at which the schedule is first seen. A day has 24
    hours: for a time of the day, use a cron expression.

    >>> every(minutes=5)
    Every(period=datetime.timedelta(seconds=300), starts_at=None)
    """
    try:
        parts = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except (TypeError, OverflowError):
        raise OutOfBounds("a period is every(minutes=5), from 1s to 366d") from None
    if period is not None and parts:
        raise InputError("every takes a timedelta, or days, hours, minutes and seconds; not both")
    return Every(parts if period is None else period, starts_at)


def at(moment: datetime) -> At:
    """A schedule for one moment, with its time zone.

    >>> at(datetime(2030, 1, 31, 9, tzinfo=UTC)).moment.hour
    9
    """
    return At(moment)


def timing_of(
    when: "str | timedelta | datetime | Cron | Every | At", tz: str | None = None
) -> Cron | Every | At:
    """What was meant: a text is a cron expression, a timedelta a period, a datetime a moment.

    >>> timing_of("@daily", "Asia/Tokyo")
    Cron(text='@daily', time_zone='Asia/Tokyo')
    """
    if isinstance(when, str):
        return _that_occurs(Cron(when, "UTC" if tz is None else tz))
    if tz is not None:
        raise InputError("a time zone goes with a cron expression; periods and moments need none")
    if isinstance(when, Cron):
        return _that_occurs(when)
    if isinstance(when, Every | At):
        return when
    if isinstance(when, timedelta):
        return Every(when)
    if isinstance(when, datetime):
        return At(when)
    raise InputError(f'a schedule is "0 3 * * *", every(minutes=5) or at(moment); got {when!r:.60}')


def _that_occurs(cron: Cron) -> Cron:
    if cron.next_after(datetime.now(UTC)) is None:
        raise OutOfBounds(
            f"the cron expression {cron.text!a} never occurs in {cron.time_zone} within fifty years: a "
            "change of daylight saving skips each of its times, or no date fits. Take another hour or day, "
            "or a fixed time, which comes at the end of the hour that is skipped"
        )
    return cron


def timing_from(
    cron: str | None,
    time_zone: str | None,
    period: timedelta | None,
    moment: datetime | None,
    starts_at: datetime,
) -> Cron | Every | At:
    """The timing of a row of the database; raises OutOfBounds for a text that is no cron expression."""
    if cron is not None:
        return Cron(cron, time_zone or "UTC")
    return Every(period, starts_at) if period is not None else At(moment or starts_at)
