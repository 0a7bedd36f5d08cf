"""I8: an interval is refused that is short where it is compared, and long where it is added.

PostgreSQL compares intervals with months of 30 days and days of 24 hours, and adds real ones. One such row in
`active` or `keys` made every claim of its queue, or every round of the reaper, fail.
"""

import psycopg
import pytest

from tests.support import claim_one, enqueue, state_of

YEAR_302000 = "3600000 mons -107999999 days"
YEAR_5600 = "3000000 mons -89999999 days"
MANY_DAYS = "-106000000 days 2544000024 hours"
ODD = [YEAR_302000, YEAR_5600, MANY_DAYS]

BOUNDS = {
    "delay": "a_delay_is_from_0_to_10_years",
    "lease_for": "a_lease_lasts_from_half_a_second_to_one_day",
    "timeout": "a_timeout_is_from_100_milliseconds_to_30_days",
    "key_for": "a_key_is_kept_for_0_to_10_years",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("field", BOUNDS)
def test_i8_an_enqueue_refuses_it(db, nothing_changes, field, odd):
    with nothing_changes(), pytest.raises(psycopg.errors.CheckViolation, match=BOUNDS[field]):
        db.execute(f"select faultline.enqueue('charge', '{{}}', key => 'one', {field} => %s)", [odd])


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("argument", ["lease", "timeout"])
def test_i8_a_claim_refuses_it(db, store, nothing_changes, argument, odd):
    enqueue(store)
    given = {"lease": "15 s", "timeout": "1 hour", argument: odd}

    with nothing_changes(), pytest.raises(psycopg.errors.CheckViolation, match=r"a_(lease|timeout)_"):
        db.execute(
            "select faultline.claim('{default}', 1, %(lease)s, gen_random_uuid(), timeout => %(timeout)s)",
            given,
        )


@pytest.mark.parametrize("longest", ["1 mon", "-1 mon 31 days"])
def test_i8_a_lease_or_timeout_has_no_months(db, nothing_changes, longest):
    """A month has no fixed length."""
    with nothing_changes(), pytest.raises(psycopg.errors.CheckViolation, match="a_timeout_is"):
        db.execute("select faultline.enqueue('charge', '{}', timeout => %s)", [longest])


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("retention", ["ledger_retention", "dead_retention", "acts_retention"])
def test_i8_a_retention_is_refused_that_no_moment_lies_before(db, nothing_changes, retention, odd):
    with nothing_changes():
        for value in (odd, "290000 years", "-1000 years 365100 days", "1 mon -29 days", "1 mon -696 hours"):
            with pytest.raises(psycopg.errors.CheckViolation, match=r"kept_for_(an_hour|a_day|1000_years)"):
                db.execute(f"select faultline.configure({retention} => %s::interval)", [value])


@pytest.mark.parametrize("odd", [YEAR_302000, YEAR_5600])
@pytest.mark.parametrize("verb", ["lead(1, %s)", "round(%s)"])
def test_i8_a_lead_and_a_tick_are_measured_in_seconds(db, nothing_changes, verb, odd):
    with nothing_changes(), pytest.raises(psycopg.Error) as refusal:
        db.execute(f"select faultline.{verb}", [odd])

    assert refusal.value.sqlstate == "LS005"


@pytest.mark.parametrize("odd", [YEAR_302000, YEAR_5600])
def test_i8_the_overlap_of_two_keys_is_measured_in_seconds(db, nothing_changes, odd):
    old, new, secret = "00000000000a", "00000000000b", b"x" * 32
    db.execute("select faultline.create_key(%s, %s, 'shop', array['read'])", [old, secret])

    with nothing_changes(), pytest.raises(psycopg.Error, match="for 0 to 90 days"):
        db.execute("select faultline.rotate_key(%s, %s, %s, %s::interval)", [old, new, secret, odd])


@pytest.mark.parametrize("odd", ODD)
def test_i8_the_delay_of_a_failure_is_at_most_thirty_days_when_it_is_added(db, store, odd):
    job = enqueue(store, max_attempts=3)
    lease = claim_one(store)

    db.execute(
        "select faultline.fail_many(%s::bigint[], %s::bigint[], %s::uuid[], '{no}', array[%s::interval])",
        [[lease.job_id], [lease.token], [lease.claim], odd],
    )

    assert state_of(store, job) == "queued"
    latest = "select max(run_at) <= faultline.now() + interval '31 days' from faultline.later"
    assert db.execute(latest).fetchone() in [(True,), (None,)]
