"""Cases of our own: what a person with psql does to the tables must not lose a job, nor end one twice."""

import pytest

from faultline.errors import LeaseLost
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, NOW, claim_one, enqueue, outcomes, state_of


def test_x1_a_job_whose_lane_was_deleted_still_fails_into_its_retry(store, db):
    """A left join where a join would drop the row: deleted from `active`, and put nowhere."""
    job = enqueue(store)
    lease = claim_one(store)
    db.execute("delete from faultline.lanes")

    store.run(calls.fail(lease, "boom", NOW))

    assert db.execute("select id from faultline.later").fetchall() == [(job,)]
    assert db.execute("select outcome::text from faultline.ledger").fetchall() == [("failed",)]


def test_x1_a_job_whose_lane_was_deleted_still_succeeds_with_an_entry(store, db):
    enqueue(store)
    lease = claim_one(store)
    db.execute("delete from faultline.lanes")

    store.run(calls.complete(lease, "null"))

    assert db.execute("select outcome::text from faultline.ledger").fetchall() == [("succeeded",)]


def test_x2_numbers_that_were_reset_by_hand_end_no_job_twice(store, db):
    """The id of a job that has ended comes again: its second success is refused by the ledger's own key."""
    first = enqueue(store)
    store.run(calls.complete(claim_one(store), "1"))
    db.execute("select setval('faultline.places', %s, false)", [first])
    assert enqueue(store) == first
    again = claim_one(store)

    with pytest.raises(Exception, match="a_job_ends_once"):
        store.run(calls.complete(again, "2"))

    assert outcomes(store, first) == ["succeeded"]
    assert store.run(calls.fail(again, "its number was used before", NOW)) == "queued"


def test_x2_tokens_that_were_reset_by_hand_still_grow_for_each_job(store, db, clock):
    enqueue(store)
    old = claim_one(store)
    db.execute("select setval('faultline.tokens', 1, false)")
    clock.advance(LEASE * 2)
    store.run(calls.reap())
    store.run(calls.promote())

    new = claim_one(store)

    assert new.token > old.token
    with pytest.raises(LeaseLost):
        store.run(calls.complete(old, "null"))


def test_x3_a_ledger_without_a_range_for_the_newest_jobs_keeps_their_ends(store, db):
    """No leader ran for ten million jobs: their ends wait in the default partition, and are moved later."""
    db.execute("select setval('faultline.places', 10500000)")
    job = enqueue(store)

    store.run(calls.complete(claim_one(store), "null"))

    assert db.execute("select count(*) from faultline.ledger_default").fetchone() == (1,)
    assert state_of(store, job) == "succeeded"
    store.run(calls.partitions())
    assert db.execute("select count(*) from faultline.ledger_default").fetchone() == (0,)
    assert state_of(store, job) == "succeeded"


def test_x4_a_queue_told_to_keep_nothing_while_its_job_runs_still_fences_it(store: Store, clock):
    job = enqueue(store, key="once")
    lease = claim_one(store)
    store.run(calls.set_retention("default", "nothing"))

    store.run(calls.complete(lease, '"done"'))

    assert outcomes(store, job) == []
    assert enqueue(store, key="once") == job
    with pytest.raises(LeaseLost):
        store.run(calls.complete(lease, '"again"'))


def test_x5_the_clock_set_back_between_claim_and_reap_takes_nothing_early(store, clock):
    job = enqueue(store)
    lease = claim_one(store)
    clock.advance(hours=-1)

    assert store.run(calls.reap()) == []

    store.run(calls.complete(lease, "null"))
    assert outcomes(store, job) == ["succeeded"]
