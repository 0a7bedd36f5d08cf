"""Every option of a job has bounds, checked before anything is sent (cases I6, I8 and T6)."""

from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from faultline import bounds
from faultline.errors import BadName, OutOfBounds

SECOND = timedelta(seconds=1)

BAD_NAMES = {
    "'; drop table jobs;--": "contains",
    "50%": "contains '%'",
    "*": "contains",
    "..": "starts with '.'",
    "-x": "starts with '-'",
    "": "is empty",
    "a:b": "contains ':'",
    "naïve": r"contains '\\xef'",
    "😀": "contains",
    "\u202egnp": "contains",
    "new\nline": r"contains '\\n'",
    "trailing\n": r"contains '\\n'",
    "nul\0": "contains",
    "x" * 10_000: "has 10000 characters",
}


@pytest.mark.parametrize("check", [bounds.check_queue_name, bounds.check_task_name])
@pytest.mark.parametrize(("name", "wrong"), BAD_NAMES.items())
def test_i6_a_name_outside_the_rules_is_refused_and_the_rule_is_told(check, name, wrong):
    with pytest.raises(BadName, match=f"{wrong}.*Use 1 to"):
        check(name)


def test_i6_the_longest_name_is_allowed_and_one_more_character_is_not():
    assert bounds.check_queue_name("q" * 63)
    assert bounds.check_task_name("t" * 128)
    for check, length in ((bounds.check_queue_name, 64), (bounds.check_task_name, 129)):
        with pytest.raises(BadName, match=f"has {length} characters"):
            check("x" * length)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(BadName, match="it is an int, not a str"):
        bounds.check_queue_name(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["_", "A.b-c-d_9", "0"])
def test_plain_names_are_allowed(name):
    assert bounds.check_queue_name(name) == name


@pytest.mark.parametrize("key", ["", "k" * 256, "a\0b", "a\nb", "\x7f", "\x85", "\ud800"])
def test_a_key_outside_the_rules_is_refused(key):
    with pytest.raises(BadName, match="a key"):
        bounds.check_key(key)


def test_a_key_may_be_any_other_text():
    assert bounds.check_key("Bestellung №7 " + "x" * 241)


REFUSED = [
    (bounds.check_max_attempts, -1), (bounds.check_max_attempts, 0), (bounds.check_max_attempts, 2**31),
    (bounds.check_max_attempts, 1.5), (bounds.check_max_attempts, True), (bounds.check_max_attempts, 10**99),
    (bounds.check_priority, -101), (bounds.check_priority, 101), (bounds.check_priority, "high"),
    (bounds.check_delay, -SECOND), (bounds.check_delay, timedelta.max), (bounds.check_delay, 5),
    (bounds.check_lease_for, timedelta(0)), (bounds.check_lease_for, timedelta(milliseconds=1)),
    (bounds.check_lease_for, timedelta(days=3650)), (bounds.check_timeout, timedelta(0)),
    (bounds.check_timeout, timedelta(days=31)),
]  # fmt: skip


@pytest.mark.parametrize(("check", "value"), REFUSED)
def test_i8_a_number_or_duration_past_its_limit_is_refused_and_the_limit_is_told(check, value):
    field = check.__name__.removeprefix("check_")

    with pytest.raises(OutOfBounds, match=rf"^{field} (goes from .* to .*; got|is a )"):
        check(value)


ALLOWED = [
    (bounds.check_max_attempts, 1), (bounds.check_max_attempts, 10_000),
    (bounds.check_priority, -100), (bounds.check_priority, 100),
    (bounds.check_delay, timedelta(0)), (bounds.check_delay, timedelta(days=3_600)),
    (bounds.check_lease_for, timedelta(milliseconds=500)), (bounds.check_lease_for, timedelta(days=1)),
    (bounds.check_timeout, timedelta(milliseconds=100)), (bounds.check_timeout, timedelta(days=30)),
]  # fmt: skip


@pytest.mark.parametrize(("check", "value"), ALLOWED)
def test_i8_the_limits_themselves_are_allowed(check, value):
    assert check(value) == value


class NoOffset(tzinfo):
    """A zone that does not know its offset makes a datetime that only looks aware."""

    def utcoffset(self, moment):
        return None

    dst = tzname = utcoffset


@pytest.mark.parametrize("run_at", [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=NoOffset())])  # noqa: DTZ001
def test_t6_a_moment_without_a_time_zone_is_refused(run_at):
    with pytest.raises(OutOfBounds, match="needs a time zone"):
        bounds.check_run_at(run_at)


@pytest.mark.parametrize("run_at", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_t6_a_moment_outside_2000_to_2199_is_refused(run_at):
    with pytest.raises(OutOfBounds, match="2000 to 2199"):
        bounds.check_run_at(run_at)


@pytest.mark.parametrize("run_at", [float("nan"), float("inf"), "infinity", None])
def test_t6_what_is_no_moment_is_refused(run_at):
    with pytest.raises(OutOfBounds, match="run_at is a datetime"):
        bounds.check_run_at(run_at)
