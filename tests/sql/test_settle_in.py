"""complete_in, fail_in and snooze_in, as any client of the database calls them."""

import psycopg
import pytest

from faultline.errors import InSavepoint, LeaseLost
from faultline.store import calls
from faultline.store.carrier import PsycopgCarrier
from tests.support import claim_one, enqueue, outcomes, state_of


@pytest.fixture
def mine(database):
    """A connection of the user's own."""
    with psycopg.connect(database) as conn:
        yield conn


def carry(conn, call):
    return PsycopgCarrier(conn).run(call)


def test_in_a_savepoint_it_is_refused_and_the_job_stays(store, mine):
    enqueue(store)
    lease = claim_one(store)

    mine.execute("select 1")
    with pytest.raises(InSavepoint, match="savepoint=True allows it"), mine.transaction():
        carry(mine, calls.complete_in(lease, "null"))
    mine.commit()

    assert state_of(store, lease.job_id) == "running"


def test_a_fence_in_a_released_savepoint_does_not_deceive_it(store, mine):
    enqueue(store)
    lease = claim_one(store)

    mine.execute("select 1")
    with mine.transaction():
        carry(mine, calls.fence(lease))
    carry(mine, calls.complete_in(lease, "null"))
    mine.commit()

    assert outcomes(store, lease.job_id) == ["succeeded"]


def test_a_fence_outside_does_not_hide_a_savepoint(store, mine):
    enqueue(store)
    lease = claim_one(store)

    carry(mine, calls.fence(lease))
    with pytest.raises(InSavepoint), mine.transaction():
        carry(mine, calls.complete_in(lease, "null"))
    mine.rollback()

    assert state_of(store, lease.job_id) == "running"


def test_another_lease_is_refused(store, mine):
    enqueue(store)
    lease = claim_one(store)

    with pytest.raises(LeaseLost):
        carry(mine, calls.complete_in(lease._replace(token=lease.token + 1), "null"))
    mine.rollback()

    assert state_of(store, lease.job_id) == "running"


def test_the_rows_tell_what_became_of_it(store, mine):
    enqueue(store)
    lease = claim_one(store)
    assert store.run(calls.outcome_in(lease)) == "running"

    carry(mine, calls.complete_in(lease, "null"))
    assert store.run(calls.outcome_in(lease)) == "busy"

    mine.commit()
    assert store.run(calls.outcome_in(lease)) == "succeeded"


def test_a_success_without_a_row_is_told_by_the_absence_of_any(store, mine):
    store.run(calls.set_retention("default", "nothing"))
    enqueue(store)
    lease = claim_one(store)

    carry(mine, calls.complete_in(lease, "null"))
    mine.commit()

    assert store.run(calls.outcome_in(lease)) == "succeeded"


def test_a_lease_of_another_claim_has_no_answer(store, mine):
    enqueue(store)
    lease = claim_one(store)

    assert store.run(calls.outcome_in(lease._replace(token=lease.token + 1))) == "gone"


def test_an_error_is_kept_once_beside_the_success_of_its_own_lease(store):
    enqueue(store)
    lease = claim_one(store)
    assert store.run(calls.note_error(lease, "too early")) is False
    store.run(calls.complete(lease, "null"))

    assert store.run(calls.note_error(lease._replace(token=lease.token + 1), "of another")) is False
    assert store.run(calls.note_error(lease, "ValueError: too late")) is True
    assert store.run(calls.note_error(lease, "a second")) is False

    (entry,) = store.run(calls.history(lease.job_id))
    assert (entry.outcome, entry.error) == ("succeeded", "ValueError: too late")


def test_asking_leaves_the_callers_lock_timeout(store, mine):
    enqueue(store)
    lease = claim_one(store)

    mine.execute("set local lock_timeout = '7s'")
    assert carry(mine, calls.outcome_in(lease)) == "running"

    assert mine.execute("show lock_timeout").fetchone() == ("7s",)
