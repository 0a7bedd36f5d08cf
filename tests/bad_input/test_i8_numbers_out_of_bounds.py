"""I8: attempts, priorities, delays, leases and timeouts have bounds; every refusal names its bound."""

from datetime import timedelta

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.bad_input.entry_points import words
from tests.support import LEASE, claim_one, enqueue

CASES = [
    ("max_attempts", -1, "max_attempts_is_from_1_to_10000"),
    ("max_attempts", 0, "max_attempts_is_from_1_to_10000"),
    ("max_attempts", 2**31, "max_attempts_is_from_1_to_10000"),
    ("priority", -101, "a_priority_is_from_minus_100_to_100"),
    ("priority", 101, "a_priority_is_from_minus_100_to_100"),
    ("priority", 2**40, "a_priority_is_from_minus_100_to_100"),
    ("delay", timedelta(seconds=-1), "a_delay_is_from_0_to_10_years"),
    ("delay", timedelta(days=20_000), "a_delay_is_from_0_to_10_years"),
    ("lease_for", timedelta(0), "a_lease_lasts_from_half_a_second_to_one_day"),
    ("lease_for", timedelta(milliseconds=1), "a_lease_lasts_from_half_a_second_to_one_day"),
    ("lease_for", timedelta(days=3_650), "a_lease_lasts_from_half_a_second_to_one_day"),
    ("timeout", timedelta(0), "a_timeout_is_from_100_milliseconds_to_30_days"),
    ("timeout", timedelta(days=31), "a_timeout_is_from_100_milliseconds_to_30_days"),
]


@pytest.mark.parametrize(("field", "value", "sentence"), CASES, ids=lambda part: str(part))
def test_i8_a_value_out_of_bounds_is_refused_at_every_door(entries, nothing_changes, field, value, sentence):
    with nothing_changes():
        told = entries.refusals(**{field: value})

    assert type(told["store"]) is errors.OutOfBounds
    assert str(told["store"]) == f"refused: {sentence.replace('_', ' ')}"
    assert type(told["sql"]) is psycopg.errors.CheckViolation
    assert sentence in words(told["sql"])
    assert type(told["python"]) is errors.OutOfBounds
    assert str(told["python"]).startswith(field)
    assert "; got " in str(told["python"])


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**40, 1.5])
@pytest.mark.parametrize("field", ["max_attempts", "priority"])
def test_i8_a_number_that_is_no_bigint_is_told_as_a_number_not_as_an_old_schema(
    entries, nothing_changes, field, value
):
    with nothing_changes():
        with pytest.raises(errors.OutOfBounds, match=f"{field} does not fit"):
            entries.by_store(**{field: value})
        with pytest.raises(errors.OutOfBounds, match=field):
            entries.by_python(**{field: value})


@pytest.mark.parametrize("value", [True, "5", None])
def test_i8_a_value_of_another_kind_is_refused_by_the_python_door(app, nothing_changes, value):
    with nothing_changes(), pytest.raises(errors.OutOfBounds, match="max_attempts is a whole number"):

        @app.task(max_attempts=value)
        def never() -> None: ...


@pytest.mark.parametrize("field", ["task", "queue", "args", "max_attempts", "priority"])
def test_i8_what_is_missing_is_named(entries, nothing_changes, field):
    with nothing_changes(), pytest.raises(psycopg.errors.IntegrityError) as refusal:
        entries.by_sql(**{field: None})

    assert "null value in column" in words(refusal.value)


def test_i8_what_is_missing_is_an_input_error_by_the_store(entries, nothing_changes):
    with nothing_changes(), pytest.raises(errors.InputError, match=r"args is missing .*; give it a value"):
        entries.by_store(args=None)


@pytest.mark.parametrize("max_jobs", [None, 0, -1, 1_001, 2**31 - 1])
def test_i8_a_claim_takes_from_1_to_1000_jobs(db, store, nothing_changes, max_jobs):
    """Without a bound a null would claim everything there is."""
    for _ in range(3):
        enqueue(store)

    with (
        nothing_changes(),
        pytest.raises(psycopg.Error, match="a claim takes from 1 to 1000 jobs") as refusal,
    ):
        db.execute("select faultline.claim(array['default'], %s, '15 s', gen_random_uuid())", [max_jobs])

    assert refusal.value.sqlstate == "LS005"


@pytest.mark.parametrize("lease", ["0", "1 ms", "10 years", "-15 s"])
def test_i8_a_claim_asks_for_a_lease_of_half_a_second_to_a_day(db, store, nothing_changes, lease):
    enqueue(store)

    with (
        nothing_changes(),
        pytest.raises(psycopg.errors.CheckViolation, match="a_lease_lasts_from_half_a_second"),
    ):
        db.execute("select faultline.claim(array['default'], 1, %s, gen_random_uuid())", [lease])


@pytest.mark.parametrize("missing", ["lease", "claim", "timeout"])
def test_i8_a_claim_without_its_lease_is_refused_not_granted_for_an_hour(db, store, nothing_changes, missing):
    enqueue(store)
    given = {
        "lease": "15 s",
        "claim": "5b1f0a5e-5e5a-4d0c-9d46-000000000001",
        "timeout": "1 hour",
        missing: None,
    }

    with nothing_changes(), pytest.raises(psycopg.Error, match="one of them is null") as refusal:
        db.execute(
            "select faultline.claim(array['default'], 1, %(lease)s, %(claim)s::uuid, timeout => %(timeout)s)",
            given,
        )

    assert refusal.value.sqlstate == "LS005"


def test_i8_a_beat_without_its_lease_is_refused_not_granted_to_the_deadline(db, store, nothing_changes):
    enqueue(store)
    lease = claim_one(store)

    with nothing_changes(), pytest.raises(psycopg.Error, match="names the lease it asks for"):
        db.execute(
            "select faultline.heartbeat(array[%s]::bigint[], array[%s]::bigint[], array[%s], null)",
            [lease.job_id, lease.token, lease.claim],
        )


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), timedelta(days=20_000)])
def test_i8_a_snooze_out_of_bounds_leaves_the_lease_as_it_is(store, nothing_changes, delay):
    enqueue(store)
    lease = claim_one(store)

    with nothing_changes(), pytest.raises(errors.OutOfBounds, match="a delay is from 0 to 10 years"):
        store.run(calls.snooze(lease, delay))


@pytest.mark.parametrize("delay", [timedelta(days=-999_999), timedelta(days=999_999)])
def test_i8_a_failure_is_always_taken_and_its_delay_is_clamped(store, db, delay):
    """A retry policy that went wrong must not lose the failure itself."""
    enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", delay))

    (wait,) = db.execute("select run_at - faultline.now() from faultline.later").fetchone()
    assert timedelta(seconds=-10) < wait <= timedelta(days=30)


@pytest.mark.parametrize("most", [-1, 2**40])
def test_i8_a_page_out_of_bounds_is_told_by_name(store, nothing_changes, most):
    with nothing_changes(), pytest.raises(errors.OutOfBounds):
        store.run(calls.list_jobs(most=most))


@pytest.mark.parametrize(
    "settings",
    [
        {"default_lease": timedelta(0)},
        {"ledger_retention": timedelta(0)},
        {"dead_retention": timedelta(seconds=-1)},
    ],
    ids=str,
)
def test_i8_settings_out_of_bounds_change_nothing(store, nothing_changes, settings):
    with nothing_changes(), pytest.raises(errors.OutOfBounds, match="refused: "):
        store.run(calls.configure(**settings))


def test_i8_zero_is_a_value_not_an_absence(store, db):
    """A key kept for no time, a job due after no time: both are sent as they are."""
    enqueue(store, key="order-7", key_for=timedelta(0), delay=timedelta(0))
    store.run(calls.complete(claim_one(store, lease=LEASE), "null"))

    assert db.execute("select until <= faultline.now() from faultline.keys").fetchone() == (True,)
