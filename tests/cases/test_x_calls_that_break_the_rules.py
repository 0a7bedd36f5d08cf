"""Cases of our own: calls that our own worker never makes, made by a client that is careless or hostile."""

from uuid import uuid4

import pytest

from faultline.errors import LeaseLost
from faultline.store import calls
from tests.support import LEASE, claim_many, claim_one, enqueue, outcomes, worker_named


def test_x6_a_claim_id_used_twice_still_tells_an_old_lease_from_a_new_one(store, clock):
    """A client that retries with the id of its last claim, without saying so: the token tells them apart."""
    job = enqueue(store)
    claim = uuid4()
    old = claim_one(store, claim=claim)
    clock.advance(LEASE * 2)
    store.run(calls.reap())
    store.run(calls.promote())
    new = claim_one(store, claim=claim)
    assert (old.job_id, old.claim) == (new.job_id, new.claim)

    with pytest.raises(LeaseLost):
        store.run(calls.complete(old, "null"))

    store.run(calls.complete(new, "null"))
    assert outcomes(store, job) == ["expired", "succeeded"]


def test_x7_a_beat_that_names_a_lease_twice_gets_one_answer_for_each_time(store):
    enqueue(store)
    enqueue(store)
    held, other = claim_many(store)
    store.run(calls.release(other))

    beats = store.run(calls.heartbeat([held, held, other], LEASE))

    assert sorted((beat.job_id, beat.answer) for beat in beats) == [
        (held.job_id, "held"), (held.job_id, "held"), (other.job_id, "lost"),
    ]  # fmt: skip


def test_x8_two_workers_of_one_name_do_not_keep_each_others_leases(store, clock):
    first, second = worker_named(store, "twin"), worker_named(store, "twin")
    assert first != second
    enqueue(store)
    lease = claim_one(store, worker=first)
    clock.advance(LEASE * 2)

    store.run(calls.heartbeat([], LEASE, second))

    assert [late.job_id for late in store.run(calls.reap())] == [lease.job_id]


def test_x9_a_transaction_that_also_settles_for_another_worker_settles_nothing(store, db):
    """One good and one stale settling in a transaction: both go, or neither."""
    enqueue(store)
    enqueue(store)
    mine, other = claim_many(store)
    store.run(calls.release(other))

    with pytest.raises(LeaseLost), store.connection() as conn, conn.transaction():
        store.run_in(conn, calls.complete(mine, "null"))
        store.run_in(conn, calls.complete(other, "null"))

    assert outcomes(store, mine.job_id) == []
    store.run(calls.complete(mine, "null"))
