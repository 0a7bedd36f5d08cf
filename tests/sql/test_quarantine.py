"""Rows damaged by hand past what CHECKs can see: they harm only themselves."""

import pytest

from faultline.store import calls
from tests.support import claim_many, claim_one, enqueue, outcomes, state_of

OURS_END = 2**61
CHECKS_END = 2**62


def damaged_job(store, db, token=OURS_END):
    job_id = enqueue(store)
    db.execute("update faultline.active set token = %s where id = %s", [token, job_id])
    return job_id


@pytest.mark.parametrize("token", [OURS_END, CHECKS_END - 1])
def test_a_claim_leaves_a_damaged_row_alone_and_its_neighbours_run(store, db, token):
    """One row at the maximum made the whole claim fail."""
    before, bad, after = enqueue(store), damaged_job(store, db, token), enqueue(store)

    taken = [lease.job_id for lease in claim_many(store)]

    assert taken == [before, after]
    assert state_of(store, bad) == "queued"


def test_a_row_just_inside_the_range_is_claimed(store, db):
    damaged_job(store, db, OURS_END - 2)

    assert claim_one(store).token == OURS_END - 1


def test_a_damaged_row_is_buried_with_the_reason(store, db):
    bad, good = damaged_job(store, db), enqueue(store)

    buried = store.run(calls.quarantine())

    assert buried == [bad]
    job = store.run(calls.get(bad))
    assert job.state == "dead"
    assert "token out of range" in job.error
    assert state_of(store, good) == "queued"


def test_sound_rows_are_never_quarantined(store):
    enqueue(store)
    enqueue(store)
    claim_one(store)

    assert store.run(calls.quarantine()) == []


def test_a_damaged_job_can_be_replayed_and_runs(store, db):
    bad = damaged_job(store, db)
    store.run(calls.quarantine())

    store.run(calls.replay(bad))

    assert store.run(calls.quarantine()) == []
    lease = claim_one(store)
    assert lease.token < OURS_END
    store.run(calls.complete(lease, "null"))
    assert state_of(store, bad) == "succeeded"


def test_a_job_damaged_twice_is_buried_twice(store, db):
    bad = damaged_job(store, db)
    store.run(calls.quarantine())
    store.run(calls.replay(bad))
    db.execute("update faultline.active set token = %s", [OURS_END + 1])

    buried = store.run(calls.quarantine())

    assert buried == [bad]
    assert outcomes(store, bad) == ["dead", "dead"]


def test_rescue_does_not_move_a_damaged_row(store, db):
    damaged_job(store, db)
    db.execute("update faultline.lanes set floor = 1000")

    assert store.run(calls.rescue()) == []
