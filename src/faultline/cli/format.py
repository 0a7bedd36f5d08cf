"""Moments, spans and long texts in readable form."""

from datetime import UTC, datetime
from typing import Any, Final

from faultline.telemetry import printable, scrub

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def span(seconds: float | None) -> str:
    """A length of time in at most two units.

    >>> span(0.0042), span(7.25), span(3_725), span(None)
    ('4ms', '7.2s', '1h02m', '-')
    """
    if seconds is None:
        return "-"
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f}ms"
    if abs(seconds) < 60:
        return f"{seconds:.1f}s"
    return _in_two_units(round(seconds))


def _in_two_units(seconds: int) -> str:
    sign = "-" if seconds < 0 else ""
    for (size, unit), (smaller, below) in zip(_UNITS, (*_UNITS[1:], (1, "s")), strict=True):
        if abs(seconds) >= size:
            return f"{sign}{abs(seconds) // size}{unit}{abs(seconds) % size // smaller:02d}{below}"
    return f"{seconds}s"


def ago(moment: datetime | None) -> str:
    """The time since a moment, or the time until it."""
    if moment is None:
        return "-"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def clock(moment: datetime | None) -> str:
    """A moment on the wall clock here, to the millisecond; with its date when that is not today."""
    if moment is None:
        return "-"
    here = moment.astimezone()
    time = here.strftime("%H:%M:%S.%f")[:-3]
    return time if here.date() == datetime.now().astimezone().date() else f"{here:%Y-%m-%d} {time}"


def safe(value: Any) -> str:
    """A database value as text that is safe for a terminal; an empty one becomes a dash."""
    return "-" if value is None else printable(scrub(str(value)))


def first_line(text: str | None) -> str:
    """The first line of an error, without the frames below it."""
    return safe(text.strip().split("\n", 1)[0]) if text and text.strip() else ""
