"""T7: however often a job failed or crashed, the next delay is never negative and never over its cap."""

from datetime import timedelta
from functools import partial

import pytest

from faultline.retry import Constant, Exponential
from faultline.store import calls
from tests.support import claim_one, enqueue

ATTEMPTS = (0, 1, 2, 63, 64, 65, 199, 200, 1_023, 1_024, 1_025, 10_000, 10**6)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("factor", [1.0, 1.0000001, 2.0, 1_000.0])
def test_t7_an_exponential_delay_stays_between_nothing_and_its_cap(attempt, factor):
    policy = Exponential(first=timedelta(microseconds=1), factor=factor, cap=HOUR, jitter=1.0)

    for chance in (0.0, 0.5, 0.999999):
        assert timedelta(0) <= policy.delay(attempt, partial(float, chance)) <= HOUR


def test_t7_a_delay_never_shrinks_as_attempts_go_on():
    policy = Exponential(jitter=0.0)

    delays = [policy.delay(attempt) for attempt in (*range(1, 100), 10**6)]

    assert delays == sorted(delays)
    assert delays[-1] == policy.cap


def test_t7_a_constant_delay_is_constant():
    assert {Constant(HOUR).delay(attempt) for attempt in ATTEMPTS} == {HOUR}


def test_t7_the_delay_after_a_crash_is_sqls_own_and_stays_under_five_minutes(db):
    """2^200 seconds came out as minus 106,751,992 days on PostgreSQL 15."""
    counts = [*ATTEMPTS, 2**31 - 1]
    delays = [db.execute("select faultline.crash_delay(%s::int)", [count]).fetchone()[0] for count in counts]

    assert all(timedelta(0) <= delay <= timedelta(minutes=5) for delay in delays)
    assert delays == sorted(delays)


def test_t7_a_job_at_its_ten_thousandth_attempt_dies_and_does_not_wrap(store, db):
    job = enqueue(store, max_attempts=10_000)
    db.execute("update faultline.active set attempt = 9999, crashes = 9999")

    store.run(calls.fail(claim_one(store), "boom", HOUR))

    info = store.run(calls.get(job))
    assert (str(info.state), info.attempt) == ("dead", 10_000)
