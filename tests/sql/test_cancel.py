"""queued | running -> cancelled: cancel from outside, cancel_claimed by the handler."""

import threading
from datetime import timedelta

import psycopg
import pytest

from faultline.errors import JobNotFound, LeaseLost, WrongState
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import LEASE, NOW, claim_many, claim_one, enqueue, outcomes, row_counts, state_of


def test_a_queued_job_that_is_cancelled_never_runs(store):
    job_id = enqueue(store)

    store.run(calls.cancel(job_id, "changed my mind"))

    job = store.run(calls.get(job_id))
    assert (job.state, job.error) == ("cancelled", "changed my mind")
    assert claim_many(store) == []


def test_a_job_for_later_can_be_cancelled(store, clock):
    job_id = enqueue(store, delay=timedelta(hours=1))

    store.run(calls.cancel(job_id))

    clock.advance(hours=2)
    store.run(calls.promote())
    assert state_of(store, job_id) == "cancelled"
    assert claim_many(store) == []


def test_a_job_waiting_for_its_retry_can_be_cancelled(store):
    job_id = enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", timedelta(hours=1)))

    store.run(calls.cancel(job_id))

    assert outcomes(store, job_id) == ["failed", "cancelled"]


def test_a_running_jobs_worker_learns_it_from_its_next_beat_and_commits_nothing(store):
    enqueue(store)
    lease = claim_one(store)

    store.run(calls.cancel(lease.job_id))

    assert [beat.answer for beat in store.run(calls.heartbeat([lease], LEASE))] == ["cancel"]
    with pytest.raises(LeaseLost) as lost:
        store.run(calls.complete(lease, "null"))
    assert lost.value.reason == "cancelled"
    assert state_of(store, lease.job_id) == "cancelled"


def test_cancelling_twice_is_cancelling_once(store, database):
    job_id = enqueue(store)
    store.run(calls.cancel(job_id, "first"))
    before = row_counts(database)

    store.run(calls.cancel(job_id, "second"))

    assert row_counts(database) == before
    assert store.run(calls.get(job_id)).error == "first"


def test_a_job_that_succeeded_cannot_be_cancelled(store):
    job_id = enqueue(store)
    store.run(calls.complete(claim_one(store), "1"))

    with pytest.raises(WrongState, match="is succeeded"):
        store.run(calls.cancel(job_id))

    assert state_of(store, job_id) == "succeeded"


def test_a_dead_job_cannot_be_cancelled(store):
    job_id = enqueue(store)
    store.run(calls.bury(claim_one(store), "no use"))

    with pytest.raises(WrongState, match="is dead"):
        store.run(calls.cancel(job_id))

    assert state_of(store, job_id) == "dead"


def test_an_unknown_job_cannot_be_cancelled(store, database):
    before = row_counts(database)

    with pytest.raises(JobNotFound, match="there is no job 404"):
        store.run(calls.cancel(404))

    assert row_counts(database) == before


def test_a_cancel_that_waits_for_a_completion_is_told_so(store, database):
    """An acknowledged cancel means no effect; so it waits for a transaction that is just committing."""
    enqueue(store)
    lease = claim_one(store)
    answer = []

    with psycopg.connect(database) as conn:
        Store.run_in(conn, calls.complete(lease, "null"))
        waiting = _in_a_thread(lambda: answer.append(_cancelled(store, lease.job_id)))
        conn.commit()
        waiting.join(60)

    assert answer == ["wrong state"]
    assert state_of(store, lease.job_id) == "succeeded"


def test_a_cancel_finds_a_job_that_moves_while_it_waits(store, clock, database):
    """It stood in `later`, was promoted, and is never answered "not found"."""
    job_id = enqueue(store, delay=timedelta(minutes=1))
    clock.advance(minutes=1)
    answer = []

    with psycopg.connect(database) as watchdog:
        Store.run_in(watchdog, calls.promote())
        waiting = _in_a_thread(lambda: answer.append(_cancelled(store, job_id)))
        watchdog.commit()
        waiting.join(60)

    assert answer == ["cancelled"]
    assert state_of(store, job_id) == "cancelled"


def test_a_cancel_finds_a_job_that_is_reaped_while_it_waits(store, clock, database):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=1)
    answer = []

    with psycopg.connect(database) as watchdog:
        Store.run_in(watchdog, calls.reap())
        waiting = _in_a_thread(lambda: answer.append(_cancelled(store, lease.job_id)))
        watchdog.commit()
        waiting.join(60)

    assert answer == ["cancelled"]
    assert outcomes(store, lease.job_id) == ["expired", "cancelled"]


def test_a_handler_may_drop_the_job_it_holds(store):
    job_id = enqueue(store)

    store.run(calls.cancel_claimed(claim_one(store), "no longer wanted"))

    job = store.run(calls.get(job_id))
    assert (job.state, job.error) == ("cancelled", "no longer wanted")


def test_a_lost_lease_can_drop_nothing(store):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.fail(lease, "boom", NOW))

    with pytest.raises(LeaseLost):
        store.run(calls.cancel_claimed(lease))

    assert state_of(store, lease.job_id) == "queued"


def _cancelled(store, job_id):
    try:
        store.run(calls.cancel(job_id))
    except WrongState:
        return "wrong state"
    return "cancelled"


def _in_a_thread(act):
    """A thread that is waiting for a lock by the time we have it."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive(), "it should be waiting for the row's lock"
    return thread
