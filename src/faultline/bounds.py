"""The bounds of every option of a job, checked before anything is sent.

The database keeps the same bounds as CHECKs, because it has other clients. Here they fail sooner, and
with the name of the option.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from faultline.errors import BadName, OutOfBounds
from faultline.text.durations import format_duration

PRIORITY_MIN: Final = -100
PRIORITY_MAX: Final = 100
ATTEMPTS_MAX: Final = 10_000
# PostgreSQL compares intervals with months of 30 days, so its ten years are 3,600 of them.
DELAY_MAX: Final = timedelta(days=3_600)
EXPIRES_IN_MIN: Final = timedelta(milliseconds=1)
LEASE_MIN: Final = timedelta(milliseconds=500)
LEASE_MAX: Final = timedelta(days=1)
TIMEOUT_MIN: Final = timedelta(milliseconds=100)
TIMEOUT_MAX: Final = timedelta(days=30)
RUN_AT_MIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
RUN_AT_MAX: Final = datetime(2200, 1, 1, tzinfo=UTC)
KEY_CHARS_MAX: Final = 255
DEPTH_MAX: Final = 1_000_000
TASK_CHARS_MAX: Final = 128
QUEUE_CHARS_MAX: Final = 63
RETRY_BYTES_MAX: Final = 8_192
"""The rules for retrying a job, from a client without trust."""

# The bounds on a number in a document, as written. A double reaches from 5e-324 to 1.8e308; jsonb would
# take 1e131071 and 1e-16383, a few bytes that print as kilobytes, and Python reads no whole number of over
# 4,300 digits.
DIGITS_MAX: Final = 400
"""Digits in a row."""
EXPONENT_MAX: Final = 400
"""In both directions."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""The characters of Unicode's categories Cc and Cs."""


def check_task_name(name: str) -> str:
    """A task's name: 1 to 128 letters, digits, `_ . -`, starting with a letter, digit or `_`.

    >>> check_task_name("billing.charge")
    'billing.charge'
    """
    return _check_name("task", name, TASK_CHARS_MAX)


def check_queue_name(name: str) -> str:
    """A queue's name: 1 to 63 letters, digits, `_ . -`, starting with a letter, digit or `_`.

    >>> check_queue_name("billing")
    'billing'
    """
    return _check_name("queue", name, QUEUE_CHARS_MAX)


def check_limit_name(name: str) -> str:
    """A limit's name: 1 to 128 letters, digits, `_ . -`, starting with a letter, digit or `_`.

    >>> check_limit_name("stripe")
    'stripe'
    """
    return _check_name("limit", name, TASK_CHARS_MAX)


def with_article(noun: str) -> str:
    """The noun of a value in a message.

    >>> with_article("int"), with_article("str")
    ('an int', 'a str')
    """
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"


def counted(count: int, noun: str) -> str:
    """A count with its noun in a message.

    >>> counted(1, "job"), counted(1000, "job"), counted(0, "job")
    ('1 job', '1,000 jobs', '0 jobs')
    """
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def _check_name(kind: str, name: object, chars_max: int) -> str:
    if isinstance(name, str) and len(name) <= chars_max and _NAME.fullmatch(name):
        return name
    shown = ascii(name[:60]) if isinstance(name, str) else repr(name)[:60]
    raise BadName(
        f"{shown} cannot be a {kind} name: {_what_is_wrong(name, chars_max)}. Use 1 to {chars_max} of "
        "A-Z a-z 0-9 _ . - and start with a letter, a digit or _"
    )


def _what_is_wrong(name: object, chars_max: int) -> str:
    if not isinstance(name, str):
        return f"it is {with_article(type(name).__name__)}, not a str"
    if not name:
        return "it is empty"
    if len(name) > chars_max:
        return f"it has {len(name)} characters"
    if name[0] in ".-":
        return f"it starts with {name[0]!r}"
    return f"it contains {next(char for char in name if not _NAME.fullmatch('_' + char))!a}"


def check_key(key: str) -> str:
    """A key: 1 to 255 characters, none of them a control character.

    >>> check_key("order-7")
    'order-7'
    """
    if not isinstance(key, str):
        raise BadName(f"a key is a str, not {with_article(type(key).__name__)}")
    if not key:
        raise BadName("a key is not empty: all jobs with one would be the same job. Leave it out for none")
    if len(key) > KEY_CHARS_MAX:
        raise BadName(
            f"a key has 1 to {KEY_CHARS_MAX} characters; this one has {len(key)}. Hash a longer one"
        )
    if found := _CONTROL.search(key):
        raise BadName(
            f"a key has no control characters and no surrogates; {key[:60]!a} contains {found[0]!a}"
        )
    return key


def check_max_depth(max_depth: int) -> int:
    """The most due jobs of a queue, from 1 to a million; 0 for no bound.

    >>> check_max_depth(1000)
    1000
    """
    return _whole("max_depth", max_depth, 0, DEPTH_MAX)


def check_age_after(age_after: timedelta) -> timedelta:
    """The age by which jobs move ahead by one priority, from a second to a year; zero for none.

    >>> check_age_after(timedelta(minutes=10))
    datetime.timedelta(seconds=600)
    """
    if age_after == timedelta(0):
        return age_after
    return _between("age_after", age_after, timedelta(seconds=1), timedelta(days=365))


def check_job_id(job_id: int) -> int:
    """A job's id, as `enqueue` gave it: a whole number from 1 up.

    >>> check_job_id(7)
    7
    """
    return _whole("a job's id", job_id, 1, 2**63 - 1)


def check_priority(priority: int) -> int:
    """A priority from -100 to 100; lower runs first.

    >>> check_priority(-5)
    -5
    """
    return _whole("priority", priority, PRIORITY_MIN, PRIORITY_MAX)


def check_max_attempts(max_attempts: int) -> int:
    """The largest number of attempts of a job, from 1 to 10,000.

    >>> check_max_attempts(5)
    5
    """
    return _whole("max_attempts", max_attempts, 1, ATTEMPTS_MAX)


def _whole(field: str, value: int, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OutOfBounds(
            f"{field} is a whole number from {low} to {high}, not {with_article(type(value).__name__)}"
        )
    if not low <= value <= high:
        shown = str(value) if abs(value) < 10**20 else "a far larger number"
        raise OutOfBounds(f"{field} goes from {low} to {high}; got {shown}")
    return value


def check_max_crashes(max_crashes: int) -> int:
    """The number of crashes alone after which a job is given up, from 1 to 10,000.

    >>> check_max_crashes(3)
    3
    """
    return _whole("max_crashes", max_crashes, 1, ATTEMPTS_MAX)


def check_delay(delay: timedelta, field: str = "delay") -> timedelta:
    """A delay from zero to 3,600 days.

    >>> check_delay(timedelta(minutes=5))
    datetime.timedelta(seconds=300)
    """
    return _between(field, delay, timedelta(0), DELAY_MAX)


def check_expires_in(expires_in: timedelta) -> timedelta:
    """The time that a job may wait for its first claim: above zero, and at most 3,600 days.

    >>> check_expires_in(timedelta(minutes=5))
    datetime.timedelta(seconds=300)
    """
    return _between("expires_in", expires_in, EXPIRES_IN_MIN, DELAY_MAX)


def check_lease_for(lease_for: timedelta) -> timedelta:
    """A lease from half a second to a day.

    >>> check_lease_for(timedelta(seconds=15))
    datetime.timedelta(seconds=15)
    """
    return _between("lease_for", lease_for, LEASE_MIN, LEASE_MAX)


def check_timeout(timeout: timedelta) -> timedelta:
    """The hard end of one attempt, from 100 ms to 30 days.

    >>> check_timeout(timedelta(hours=1))
    datetime.timedelta(seconds=3600)
    """
    return _between("timeout", timeout, TIMEOUT_MIN, TIMEOUT_MAX)


def _between(field: str, value: timedelta, low: timedelta, high: timedelta) -> timedelta:
    if not isinstance(value, timedelta):
        raise OutOfBounds(f"{field} is a timedelta, such as {_as_timedelta(value)}; got {value!r:.60}")
    if not low <= value <= high:
        bounds = f"from {format_duration(low)} to {format_duration(high)}"
        raise OutOfBounds(f"{field} goes {bounds}; got {format_duration(value)}")
    return value


def _as_timedelta(value: object) -> str:
    """The spelling to use: a bare number most likely meant seconds."""
    seconds = value if isinstance(value, int | float) and not isinstance(value, bool) else 30
    return f"timedelta(seconds={seconds})"


def check_run_at(run_at: datetime, field: str = "run_at") -> datetime:
    """A moment with a time zone, in the years 2000 to 2199.

    >>> check_run_at(datetime(2026, 1, 1, tzinfo=UTC)).year
    2026
    """
    if not isinstance(run_at, datetime):
        raise OutOfBounds(f"{field} is a datetime, not {with_article(type(run_at).__name__)}")
    if run_at.tzinfo is None or run_at.utcoffset() is None:
        raise OutOfBounds(
            f"{field} needs a time zone, or it would mean another moment on another machine; got {run_at}. "
            f"Use datetime.now(UTC) + ..., or {field}.astimezone()"
        )
    if not RUN_AT_MIN <= run_at < RUN_AT_MAX:
        raise OutOfBounds(f"{field} lies in the years 2000 to 2199; got {run_at.isoformat()}")
    return run_at
