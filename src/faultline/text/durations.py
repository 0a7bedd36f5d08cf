"""Durations in common notation: `250ms`, `90s`, `1h30m`, `2d`, or ISO 8601 `PT1H30M`."""

import re
from datetime import timedelta
from typing import Final

from faultline.errors import InputError, OutOfBounds

_MICROSECONDS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d|w)", re.ASCII)
_PLAIN: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_NUMBER: Final = r"(\d+(?:[.,]\d+)?)"
_ISO: Final = re.compile(
    rf"P(?=.)(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)
_TEXT_CHARS_MAX: Final = 100


def parse_duration(text: str) -> timedelta:
    """Read a duration.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    >>> parse_duration("PT0.25S") == parse_duration("250ms")
    True
    """
    written = text.strip()
    if len(written) <= _TEXT_CHARS_MAX:
        if _PLAIN.fullmatch(written):
            return _sum([(number, unit) for number, unit in _PART.findall(written)], text)
        if iso := _ISO.fullmatch(written.upper()):
            parts = zip(iso.groups(), ("w", "d", "h", "m", "s"), strict=True)
            return _sum([(number.replace(",", "."), unit) for number, unit in parts if number], text)
    raise InputError(
        f"{text[:_TEXT_CHARS_MAX]!a} is not a duration; write a number with a unit "
        "(us, ms, s, m, h, d, w), such as 250ms, 90s or 1h30m, or ISO 8601 such as PT1H30M"
    )


def _sum(parts: list[tuple[str, str]], text: str) -> timedelta:
    try:
        return timedelta(
            microseconds=round(sum(float(number) * _MICROSECONDS[unit] for number, unit in parts))
        )
    except OverflowError:
        raise OutOfBounds(
            f"the duration {text[:_TEXT_CHARS_MAX]!a} is longer than a computer can count"
        ) from None


def format_duration(duration: timedelta) -> str:
    """Write a duration so that `parse_duration` reads the same one back.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(milliseconds=250))
    ('1h30m', '250ms')
    """
    left = duration // timedelta(microseconds=1)
    if left < 0:
        return "-" + format_duration(-duration)
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, left = divmod(left, _MICROSECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
