"""running -> running: a beat renews every lease that a worker holds, and says which are lost."""

from datetime import timedelta
from uuid import uuid4

import pytest

from faultline.errors import OutOfBounds
from faultline.store import calls
from tests.support import LEASE, claim_many, claim_one, enqueue, holding, new_job, row_counts, worker_named


def beat(store, *leases, lease=LEASE, worker=None):
    return [answer.answer for answer in store.run(calls.heartbeat(leases, lease, worker))]


def lease_until(store, lease):
    return store.run(calls.get(lease.job_id)).lease_until


def test_a_beat_renews_the_lease_from_now(store, clock):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(seconds=10)

    answers = beat(store, lease)

    assert answers == ["held"]
    assert abs(lease_until(store, lease) - clock.now() - LEASE) < timedelta(seconds=2)


def test_every_lease_gets_its_own_answer(store, database, clock):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(4)]))
    held, busy, lost, cancelled = claim_many(store)
    store.run(calls.release(lost))
    store.run(calls.cancel(cancelled.job_id))

    with holding(database, busy.job_id):
        answers = store.run(calls.heartbeat([cancelled, lost, busy, held], LEASE))

    assert {answer.job_id: answer.answer for answer in answers} == dict(
        zip(ids, ["held", "busy", "lost", "cancel"], strict=True)
    )


def test_a_locked_row_does_not_stall_the_heartbeat_of_the_others(store, database, clock):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))
    leases = claim_many(store)
    clock.advance(seconds=10)

    with holding(database, leases[1].job_id):
        answers = beat(store, *leases)

    assert answers == ["held", "busy", "held"]
    assert lease_until(store, leases[2]) > lease_until(store, leases[1])


def test_a_beat_never_shortens_a_lease(store):
    enqueue(store)
    lease = claim_one(store, lease=timedelta(minutes=10))
    before = lease_until(store, lease)

    answers = beat(store, lease, lease=timedelta(seconds=1))

    assert answers == ["held"]
    assert lease_until(store, lease) == before


def test_a_beat_never_moves_a_lease_past_the_hard_end(store, clock, db):
    enqueue(store, timeout=timedelta(seconds=20))
    lease = claim_one(store)
    clock.advance(seconds=12)

    answers = beat(store, lease)

    deadline = db.execute("select deadline_at from faultline.active").fetchone()[0]
    assert answers == ["held"]
    assert lease_until(store, lease) == deadline


def test_a_beat_uses_the_jobs_own_lease(store, clock):
    enqueue(store, lease_for=timedelta(minutes=4))
    lease = claim_one(store)
    clock.advance(minutes=1)

    beat(store, lease)

    assert abs(lease_until(store, lease) - clock.now() - timedelta(minutes=4)) < timedelta(seconds=2)


def test_a_late_heartbeat_is_still_taken_while_no_other_took_the_job(store, clock):
    """Refusing would save nothing and run the work twice."""
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=5)

    answers = beat(store, lease)
    store.run(calls.reap())

    assert answers == ["held"]
    assert lease_until(store, lease) > clock.now()


def test_a_beat_after_the_job_was_taken_is_lost(store, clock):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())
    reaped = beat(store, lease)
    store.run(calls.promote())
    newer = claim_one(store)
    before = lease_until(store, newer)
    clock.advance(seconds=5)

    claimed_again = beat(store, lease)

    assert (reaped, claimed_again) == (["lost"], ["lost"])
    assert lease_until(store, newer) == before


def test_an_old_and_a_new_lease_of_one_job_are_told_apart(store, clock):
    """A worker may take its own job again while its first handler still runs."""
    enqueue(store)
    old = claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())
    new = claim_one(store)

    answers = store.run(calls.heartbeat([old, new], LEASE))

    assert {answer.token: answer.answer for answer in answers} == {old.token: "lost", new.token: "held"}


def test_the_right_token_with_another_claim_is_lost(store):
    enqueue(store)
    lease = claim_one(store)
    before = lease_until(store, lease)

    answers = beat(store, lease._replace(claim=uuid4()), lease=timedelta(minutes=5))

    assert answers == ["lost"]
    assert lease_until(store, lease) == before


@pytest.mark.parametrize("end", ["succeeded", "dead", "failed"])
def test_a_beat_after_any_other_end_is_lost(store, end):
    enqueue(store)
    lease = claim_one(store)
    ending = {
        "succeeded": calls.complete(lease, "null"),
        "dead": calls.bury(lease, "no use"),
        "failed": calls.fail(lease, "boom", timedelta(hours=1)),
    }
    store.run(ending[end])

    assert beat(store, lease) == ["lost"]


def test_a_beat_for_nothing_answers_nothing(store):
    assert beat(store) == []


def test_a_beat_says_that_its_worker_is_there(store, clock, db):
    worker = worker_named(store, "ada")
    clock.advance(hours=1)

    beat(store, worker=worker)

    seen = db.execute("select seen_at from faultline.workers").fetchone()[0]
    assert clock.now() - seen < timedelta(seconds=5)


def test_a_held_worker_row_does_not_stall_a_beat(store, database, db):
    worker = worker_named(store, "ada")
    enqueue(store)
    lease = claim_one(store)

    with db.transaction():
        db.execute("select from faultline.workers for update")
        answers = beat(store, lease, worker=worker)

    assert answers == ["held"]


def test_a_beat_changes_nothing_but_the_lease(store, database):
    enqueue(store)
    lease = claim_one(store)
    before, job = row_counts(database), store.run(calls.get(lease.job_id))

    beat(store, lease)

    after = store.run(calls.get(lease.job_id))
    assert row_counts(database) == before
    assert (after.token, after.attempt, after.claimed_at) == (job.token, job.attempt, job.claimed_at)


@pytest.mark.parametrize("seconds", [0.4, 86401])
def test_a_beat_outside_the_bounds_of_a_lease_is_refused(store, seconds):
    enqueue(store)
    lease = claim_one(store)

    with pytest.raises(OutOfBounds):
        beat(store, lease, lease=timedelta(seconds=seconds))
