"""Case T5: times on the wall clock over changes of daylight saving, against a slow reference."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from faultline.errors import OutOfBounds
from faultline.schedules import Cron, timing_of, zones
from faultline.schedules.ranges import past_times
from tests.schedules.reference import FIXED, WILD, ZONES, changes, fixed, wildcards

DAY = timedelta(days=1)


def found(expression, zone, start, end):
    """The times of the shipped code, one asked after the other."""
    cron, moment, times = Cron(expression, zone), start - timedelta(seconds=1), []
    while (moment := cron.next_after(moment)) is not None and moment < end:
        times.append(moment)
    return times


def spans(zone, each=DAY):
    """The time around each change of a zone; a day in summer where there is none."""
    moments = changes(zone) or [datetime(2027, 7, 1, tzinfo=UTC)]
    return [(moment - each, moment + each) for moment in moments]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo"])
def test_a_fixed_time_runs_once_a_day_whatever_the_clocks_do(zone):
    for start, end in spans(zone):
        for expression in FIXED[:3]:
            assert found(expression, zone, start, end) == list(fixed(expression, zone, start, end))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo"])
def test_a_wildcard_runs_whenever_the_wall_clock_fits(zone):
    for start, end in spans(zone):
        for expression in WILD[:3]:
            assert found(expression, zone, start, end) == list(wildcards(expression, zone, start, end))


@pytest.mark.long
@pytest.mark.parametrize("zone", ZONES)
def test_all_expressions_over_the_changes_of_twenty_zones(zone):
    for start, end in spans(zone, 4 * DAY):
        for expression in FIXED:
            assert found(expression, zone, start, end) == list(fixed(expression, zone, start, end)), (
                expression
            )
        for expression in WILD:
            wild = list(wildcards(expression, zone, start, end))
            assert found(expression, zone, start, end) == wild, expression


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *"])
def test_a_fixed_time_in_the_gap_comes_at_its_end_and_in_the_repeated_hour_once(expression):
    there = ZoneInfo("Europe/Berlin")
    walls = [
        moment.astimezone(there).strftime("%d %H:%M %Z")
        for start in (datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 10, 30, 12, tzinfo=UTC))
        for moment in found(expression, "Europe/Berlin", start, start + 2 * DAY)
    ]
    assert walls == ["28 03:00 CEST", "29 02:30 CEST", "31 02:30 CEST", "01 02:30 CET"]


def test_the_next_time_is_asked_from_any_moment_of_a_repeated_hour():
    first = datetime(2027, 10, 31, 0, 0, tzinfo=UTC)  # 02:00 CEST; 02:00 CET comes an hour later
    for minutes in range(0, 121, 7):
        moment = first + timedelta(minutes=minutes)
        wild = Cron("*/30 2 * * *", "Europe/Berlin").next_after(moment)
        assert wild == next(
            wildcards("*/30 2 * * *", "Europe/Berlin", moment + timedelta(minutes=1), first + 3 * DAY)
        )
        assert Cron("30 2 * * *", "Europe/Berlin").next_after(moment) > moment


def test_leap_days_and_the_last_days_of_months():
    leap = Cron("0 0 29 2 *")
    assert leap.next_after(datetime(2096, 3, 1, tzinfo=UTC)).year == 2104  # 2100 has none
    last = Cron("0 0 L * *", "Asia/Tokyo")
    days, moment = [], datetime(2027, 12, 31, tzinfo=UTC)
    for _ in range(3):
        moment = last.next_after(moment)
        days.append(moment.astimezone(ZoneInfo("Asia/Tokyo")).day)
    assert days == [31, 29, 31]


def test_seconds_first():
    times = iter(
        found("*/20 0 3 * * *", "UTC", datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC))
    )
    assert [moment.second for moment in islice(times, 4)] == [0, 20, 40]


@pytest.mark.parametrize(
    ("expression", "zone"),
    [("* 2 * 3 7L", "Europe/Berlin"), ("*/15 2 * 3 SUN#2", "America/New_York")],
)
def test_times_that_daylight_saving_always_skips_are_looked_for_up_to_a_horizon(
    expression, zone, monkeypatch
):
    walked = []
    walk = Cron._next_wall

    def counted(cron, wall):
        walked.append(wall)
        return walk(cron, wall)

    monkeypatch.setattr(Cron, "_next_wall", counted)
    assert Cron(expression, zone).next_after(datetime(2026, 11, 20, tzinfo=UTC)) is None
    assert len(walked) < 1_000

    with pytest.raises(OutOfBounds, match="never occurs"):
        timing_of(expression, zone)
    with pytest.raises(OutOfBounds, match="never occurs"):
        timing_of(Cron(expression, zone))


def test_after_the_end_of_the_calendar_there_is_no_next_time():
    assert Cron("* * * * *", "Europe/Berlin").next_after(datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize(
    "since", [datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
              datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))],
)  # fmt: skip
@pytest.mark.parametrize("end", ["since", "until"])
def test_a_range_at_the_edge_of_time_is_refused_by_name(since, end):
    now = datetime(2026, 11, 20, tzinfo=UTC)
    schedule: Any = SimpleNamespace(name="tick", timing=Cron("0 * * * *"), moment=now, next_at=None)
    with pytest.raises(OutOfBounds, match=f"{end} lies in the years 2000 to 2199"):
        past_times(schedule, **{"since": now, end: since})


def test_a_zone_that_is_not_known_is_looked_for_once(monkeypatch):
    looked = []

    def missing(name):
        looked.append(name)
        raise LookupError

    monkeypatch.setattr(zones, "ZoneInfo", missing)
    for _ in range(3):
        with pytest.raises(OutOfBounds, match="there is no time zone 'Mars/Olympus'"):
            zones.known_zone("Mars/Olympus")
    assert looked == ["Mars/Olympus"]
