"""Cron expressions: five fields, or six with seconds first, in a time zone."""

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Final

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from faultline.errors import OutOfBounds
from faultline.schedules import wall_clock
from faultline.schedules.zones import zone_of
from faultline.text.suggest import did_you_mean

CHARS_MAX: Final = 200

ALIASES: Final = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip

_RANGES: Final = {
    Field.SECOND: "second goes from 0 to 59",
    Field.MINUTE: "minute goes from 0 to 59",
    Field.HOUR: "hour goes from 0 to 23",
    Field.DAY: "day of the month goes from 1 to 31, or is L for the last day, LW for the last weekday",
    Field.MONTH: "month goes from 1 to 12, or JAN to DEC",
    Field.DOW: "day of the week goes from 0 to 7, Sunday is both, or SUN to SAT; MON#2 is the second Monday, "
    "5L the last Friday",
}
_ANY_DAY: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall-clock time


@dataclass(frozen=True, slots=True)
class Cron:
    """Times by a cron expression, read on the wall clock of a time zone.

    A fixed time that a change of daylight saving skips comes at the end of the gap, one that it repeats comes
    the first time. With a wildcard in seconds, minutes or hours, times run in both repeated hours.

    >>> Cron("0 3 * * *", "Europe/Berlin").next_after(datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T02:00:00+00:00'
    >>> Cron("0 25 * * *")
    Traceback (most recent call last):
    faultline.errors.OutOfBounds: the hour of this cron expression is wrong at '25': hour goes from 0 to 23
        0 25 * * *
          ^^
    """

    text: str
    time_zone: str = "UTC"
    _zone: tzinfo = field(init=False, repr=False, compare=False)
    _walk: CronSim = field(init=False, repr=False, compare=False)
    _is_fixed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", zone_of(self.time_zone))
        walk, fields = _parsed(self.text)
        object.__setattr__(self, "_walk", walk)
        # As in Debian's cron: a wildcard where the fastest fields stand.
        object.__setattr__(self, "_is_fixed", not any(part.startswith("*") for part in fields[:-3]))

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None when there is none within fifty years."""
        try:
            return self._search(moment.astimezone(UTC).replace(microsecond=0))
        except OverflowError:  # the calendar of Python ends with the year 9999
            return None

    def _search(self, after: datetime) -> datetime | None:
        if self._zone is UTC:
            found = self._next_wall(after.replace(tzinfo=None))
            return None if found is None else found.replace(tzinfo=UTC)
        search = wall_clock.next_fixed if self._is_fixed else wall_clock.next_repeated
        return search(self._next_wall, after, self._zone)

    def explain(self) -> str:
        """The expression in words.

        >>> Cron("0 3 * * *").explain()
        'At 03:00 every day'
        """
        return self._walk.explain()

    def _next_wall(self, wall: datetime) -> datetime | None:
        walk = copy.copy(self._walk)
        walk.dt = wall
        return next(walk, None)


def _parsed(text: str) -> tuple[CronSim, list[str]]:
    if not isinstance(text, str) or not text.strip():
        raise OutOfBounds('a cron expression is a text of five fields, such as "0 3 * * *"')
    if len(text) > CHARS_MAX:
        raise OutOfBounds(f"a cron expression has at most {CHARS_MAX} characters; this one has {len(text)}")
    written = _without_alias(text)
    fields = written.split()
    if len(fields) not in (5, 6):
        raise OutOfBounds(
            f"a cron expression has five fields, minute hour day month weekday, or six with seconds first; "
            f"{text!a} has {len(fields)}"
        )
    try:
        return CronSim(written, _ANY_DAY), fields
    except (CronSimError, ValueError, AssertionError, IndexError):
        raise OutOfBounds(_what_is_wrong(written, fields)) from None


def _without_alias(text: str) -> str:
    word = text.strip().lower()
    if not word.startswith("@"):
        return text
    if word not in ALIASES:
        raise OutOfBounds(
            f"{text!a} is not a cron expression{did_you_mean(word, ALIASES) or '.'} "
            f"The words are {', '.join(ALIASES)}"
        )
    return ALIASES[word]


def _what_is_wrong(text: str, fields: list[str]) -> str:
    """The field that is wrong, marked; the first wrong part of a list."""
    start = 0
    for kind, part in zip(list(Field)[6 - len(fields) :], fields, strict=True):
        start = text.index(part, start)
        for term in part.split(","):
            if not _is_right(kind, term):
                name = _RANGES[kind].partition(" goes")[0]
                marked = _marked(text, start, len(term))
                return (
                    f"the {name} of this cron expression is wrong at {term[:40]!a}: "
                    f"{_RANGES[kind]}{_hint(term)}{marked}"
                )
            start += len(term) + 1
    day = fields[-3]
    marked = _marked(text, text.index(day, sum(map(len, fields[:-3]))), len(day))
    return f"this cron expression never occurs: none of its months has such a day{marked}"


def _is_right(kind: Field, term: str) -> bool:
    try:
        kind.parse(term.upper())
    except (CronSimError, ValueError, AssertionError, IndexError):
        return False
    return True


def _hint(term: str) -> str:
    return "; write * for any" if "?" in term else ""


def _marked(text: str, start: int, length: int) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text)
    return f"\n    {shown}\n    {' ' * start}{'^' * max(length, 1)}"
