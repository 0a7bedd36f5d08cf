"""Limit: how many jobs run at once, in total and for each key, and how many start in a time."""

import math
import re
from dataclasses import dataclass
from typing import Final, Literal

from faultline.bounds import KEY_CHARS_MAX, check_limit_name
from faultline.errors import BadName, ConfigError, OutOfBounds

COUNT_MAX: Final = 1_000_000
RATE_MIN: Final = 1 / 604_800
RATE_MAX: Final = 1_000_000.0
KEY_PARTS_MAX: Final = 8

_SECONDS: Final = {
    "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3_600, "hour": 3_600,
    "d": 86_400, "day": 86_400,
}  # fmt: skip
_RATE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/|per)\s*([a-z]+)\s*")

OnRetry = Literal["yield", "block"]
"""What a job of `per_key=1` does while it waits for a retry: it lets the next go first, or holds its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most so many *leases* at once, and so many starts in a time.

    A handler that outlived its lease may still run beside them, but can commit nothing.

    >>> limit = Limit(per_key=5, total=100, rate="50/s", key="tenant")
    >>> limit.per_second, limit.key_path
    (50.0, ['tenant'])
    >>> Limit(per_key=0, key="tenant")
    Traceback (most recent call last):
    faultline.errors.OutOfBounds: per_key is 0; a limit is from 1 to 1,000,000 (pause the queue to run none)
    """

    per_key: int | None = None
    """Jobs of one key at once. With 1, jobs of a key run one after another, in the order of their ids."""
    total: int | None = None
    """Jobs at once, of all keys together. With a key and without `per_key`, keys take turns."""
    rate: str | float | None = None
    """Starts in a time: "50/s", "100/min", "10/h", "1/day"; a number is a second's."""
    burst: int | None = None
    """Starts at once after a quiet time; by default one second's, at least 1."""
    key: str | None = None
    """The argument whose value is the key; dots go into objects: "order.tenant"."""
    name: str | None = None
    """The name of the limit; by default the task's. Tasks that name the same limit share it."""
    parent: str | None = None
    """A limit that counts jobs of this one too, such as the queue's; it bounds the total and the rate."""
    on_retry: OnRetry = "yield"

    def __post_init__(self) -> None:
        _check_count("per_key", self.per_key)
        _check_count("total", self.total)
        _check_count("burst", self.burst)
        self._check_rate()
        self._check_key()
        if self.on_retry not in ("yield", "block"):
            raise OutOfBounds(f"on_retry is yield or block; got {str(self.on_retry)[:40]!a}")
        if self.on_retry == "block" and self.per_key != 1:
            raise ConfigError('on_retry="block" is for per_key=1: other limits keep no order')
        for name in (self.name, self.parent):
            if name is not None:
                check_limit_name(name)
        if self.parent is not None and self.parent == self.name:
            raise ConfigError(f"limit {self.name} is its own parent")

    def _check_rate(self) -> None:
        if self.burst is not None and self.rate is None:
            raise ConfigError("burst is given without a rate")
        rate = self.per_second
        if rate is not None and not RATE_MIN <= rate <= RATE_MAX:
            raise OutOfBounds(
                f"rate is {self.rate!a}; a rate is from one a week to {RATE_MAX:,.0f} a second "
                "(pause the queue to start none)"
            )

    def _check_key(self) -> None:
        if self.per_key is not None and self.key is None:
            raise ConfigError(
                'per_key needs a key, the argument that it counts by: Limit(per_key=5, key="tenant")'
            )
        if self.key is not None and (
            not isinstance(self.key, str)
            or not 1 <= len(self.key_path or ()) <= KEY_PARTS_MAX
            or not all(self.key_path or ())
            or len(self.key) > KEY_CHARS_MAX
        ):
            raise BadName(
                f"a limit's key is an argument, or a path into one such as order.tenant; got {self.key!a:.60}"
            )

    @property
    def per_second(self) -> float | None:
        """The rate in starts a second.

        >>> Limit(rate="90/min").per_second
        1.5
        """
        return None if self.rate is None else parse_rate(self.rate)

    @property
    def key_path(self) -> list[str] | None:
        """Where the key stands in the arguments."""
        return None if self.key is None else self.key.split(".")


def parse_rate(text: str | float) -> float:
    """Starts a second.

    >>> parse_rate("50/s"), parse_rate("6 per minute"), parse_rate(2)
    (50.0, 0.1, 2.0)
    >>> parse_rate("fast")
    Traceback (most recent call last):
    faultline.errors.OutOfBounds: a rate is a number in a time: 50/s, 100/min, 10/h or 1/day; got 'fast'
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        if math.isfinite(text):
            return float(text)
    elif isinstance(text, str):
        found = _RATE.fullmatch(text.lower())
        unit = found and (_SECONDS.get(found[2]) or _SECONDS.get(found[2].removesuffix("s")))
        if found and unit:
            return float(found[1]) / unit
    raise OutOfBounds(f"a rate is a number in a time: 50/s, 100/min, 10/h or 1/day; got {str(text)[:40]!a}")


def _check_count(name: str, value: int | None) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise OutOfBounds(f"{name} is a whole number; got {str(value)[:40]!a}")
    if not 1 <= value <= COUNT_MAX:
        raise OutOfBounds(
            f"{name} is {value}; a limit is from 1 to {COUNT_MAX:,} (pause the queue to run none)"
        )
