"""Time zones by name, with a suggestion for one that is not known."""

from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from faultline.errors import OutOfBounds
from faultline.text.suggest import close_to

ZONE_CHARS_MAX: Final = 100


def zone_of(name: str) -> tzinfo:
    """The time zone of this name, from the system's data or from the package tzdata.

    >>> zone_of("Berlin")
    Traceback (most recent call last):
    faultline.errors.OutOfBounds: there is no time zone 'Berlin'; did you mean Europe/Berlin?
    """
    try:
        return known_zone(name)
    except OutOfBounds as error:
        raise OutOfBounds(f"{error}{_hint(str(name)[:ZONE_CHARS_MAX])}") from None


def known_zone(name: str) -> tzinfo:
    """The time zone of this name; one that is not known is refused in no time, without a suggestion."""
    found = _found(name) if isinstance(name, str) and len(name) <= ZONE_CHARS_MAX else None
    if found is None:
        raise OutOfBounds(f"there is no time zone {str(name)[:ZONE_CHARS_MAX]!a}")
    return found


@lru_cache(maxsize=4096)
def _found(name: str) -> tzinfo | None:
    """None for a name that is not known, which is kept too: each look for it reads the disk."""
    if name == "UTC":
        return UTC  # also where there is no data at all
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # OSError: the name of a folder, such as Europe
        return None


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones())


def _hint(name: str) -> str:
    known = _names()
    if not known:
        return ": this system has no time zone data. Install it, or `pip install tzdata`"
    place = name.strip().lower().replace(" ", "_")
    cities = sorted(zone for zone in known if zone.lower().rpartition("/")[2] == place)
    close = cities[:3] or close_to(name, known)
    return f"; did you mean {' or '.join(close)}?" if close else "; names are such as Europe/Berlin or UTC"
