"""T6: infinity, the years 1 and 9999, BC and what is no moment at all are refused before they are stored."""

from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline import errors
from faultline.store import calls
from faultline.store.pool import Store
from tests.bad_input.entry_points import words
from tests.support import enqueue

SENTENCE = "a_moment_lies_between_the_years_2000_and_2200"


@pytest.mark.parametrize(
    "moment",
    ["infinity", "-infinity", "9999-12-31", "0001-01-01", "0044-03-15 BC", "1999-12-31", "2200-01-01"],
)
def test_t6_a_moment_outside_its_years_is_refused_by_sql(entries, nothing_changes, moment):
    with nothing_changes(), pytest.raises(psycopg.errors.CheckViolation) as refusal:
        entries.by_sql(run_at=moment)

    assert SENTENCE in words(refusal.value)


@pytest.mark.parametrize("moment", ["NaN", "tomorrowish", "", "2026-02-30", "25:61", "12026-01-01 BC BC"])
def test_t6_what_is_no_moment_is_refused_by_sql(entries, nothing_changes, moment):
    with nothing_changes(), pytest.raises(psycopg.DataError):
        entries.by_sql(run_at=moment)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 2, tzinfo=UTC),
        datetime(9999, 12, 30, tzinfo=UTC),
        datetime(1999, 12, 31, tzinfo=UTC),
        datetime(2200, 1, 2, tzinfo=UTC),
    ],
)
def test_t6_a_moment_outside_its_years_is_refused_by_the_store(entries, nothing_changes, moment):
    with nothing_changes(), pytest.raises(errors.OutOfBounds, match="between the years 2000 and 2200"):
        entries.by_store(run_at=moment)


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (datetime(9999, 12, 31, tzinfo=UTC), "years 2000 to 2199"),
        (datetime(1, 1, 1, tzinfo=UTC), "years 2000 to 2199"),
        (datetime(9999, 12, 31, tzinfo=timezone(timedelta(hours=-14))), "years 2000 to 2199"),
        (datetime(2030, 1, 1), "needs a time zone"),  # noqa: DTZ001 - that it has none is the case
        ("tomorrow", "is a datetime"),
        (float("nan"), "is a datetime"),
    ],
    ids=str,
)
def test_t6_the_python_door_says_what_run_at_must_be(entries, nothing_changes, moment, said):
    with nothing_changes(), pytest.raises(errors.OutOfBounds, match=f"run_at .*{said}"):
        entries.by_python(run_at=moment)


@pytest.mark.parametrize(
    "delay", ["infinity", "-infinity", "NaN", "1 fortnightish", "10 years 1 second", "-1 microsecond"]
)
def test_t6_a_delay_that_is_none_is_refused_by_sql(entries, nothing_changes, delay):
    with nothing_changes(), pytest.raises(psycopg.Error) as refusal:
        entries.by_sql(delay=delay)

    assert refusal.value.sqlstate in ("23514", "22007", "22008")


def test_t6_no_door_lets_a_lease_end_at_infinity(db, entries, nothing_changes):
    entries.by_store()

    with (
        nothing_changes(),
        pytest.raises(psycopg.errors.CheckViolation, match="a_lease_ends_at_a_real_moment"),
    ):
        db.execute(
            "update faultline.active set claim = gen_random_uuid(), lease_until = 'infinity',"
            " claimed_at = now(), deadline_at = now()"
        )


def test_t6_the_settings_of_a_role_move_no_moment(database, entries, db):
    """D15: a moment with a zone is the same moment under any TimeZone and DateStyle, both in and out."""
    moment = datetime(2030, 3, 31, 1, 30, tzinfo=UTC)
    elsewhere = Store(make_conninfo(database, options="-c timezone=Pacific/Kiritimati -c datestyle=SQL,DMY"))
    db.execute("set timezone = 'Pacific/Kiritimati'")

    jobs = [
        entries.by_sql(run_at=moment),
        entries.by_python(run_at=moment),
        enqueue(elsewhere, run_at=moment),
    ]
    read_back = [elsewhere.run(calls.get(job)).run_at for job in jobs]
    elsewhere.close()

    assert read_back == [moment] * 3
