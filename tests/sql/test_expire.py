"""A job that no worker claims in time ends, and none is claimed after its time."""

from datetime import timedelta

import psycopg
import pytest

from faultline.errors import OutOfBounds
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, claim_many, claim_one, enqueue, new_job, outcomes, row_counts, state_of

MINUTE = timedelta(minutes=1)
REASON = "expired before it started"


def one(store, **options):
    return store.run(calls.enqueue(new_job(**options)))


def many(store, **options):
    return store.run(calls.enqueue_many([new_job(**options)]))[0]


def each(store, **options):
    return store.run(calls.enqueue_each([new_job(**options)]))[0].id


def expired(store):
    return {job.id for job in store.run(calls.expire())}


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("form", [one, many, each])
def test_a_job_that_is_late_is_never_claimed_and_ends_as_cancelled(store, clock, form, key):
    enqueue(store, queue="default", key="lane")
    store.run(calls.complete(claim_one(store), "null"))
    due = form(store, expires_in=MINUTE, key=key)
    put_off = form(store, expires_at=clock.now() + MINUTE, delay=MINUTE / 2, task="later")
    clock.advance(MINUTE)

    store.run(calls.promote())
    late = claim_many(store)
    ended = expired(store)

    assert late == []
    assert ended == {due, put_off}
    for job_id in ended:
        job = store.run(calls.get(job_id))
        assert (job.state, job.error, job.token, job.args) == ("cancelled", REASON, 0, {})
        assert outcomes(store, job_id) == ["cancelled"]
    assert expired(store) == set()


def test_a_job_that_waits_in_later_expires_there(store, clock):
    job_id = enqueue(store, delay=MINUTE, expires_in=MINUTE * 2)
    clock.advance(MINUTE * 3)

    assert expired(store) == {job_id}
    assert state_of(store, job_id) == "cancelled"


def test_until_its_time_it_is_claimed_and_then_runs_past_it(store, clock):
    enqueue(store, expires_in=MINUTE)
    clock.advance(MINUTE - timedelta(seconds=1))
    lease = claim_one(store)
    clock.advance(MINUTE)

    assert expired(store) == set()
    store.run(calls.complete(lease, "null"))
    assert state_of(store, lease.job_id) == "succeeded"


@pytest.mark.parametrize("back", ["fail", "snooze", "release", "reap", "replay"])
def test_a_job_that_was_claimed_once_expires_no_more(store, clock, back):
    job_id = enqueue(store, expires_in=MINUTE, max_attempts=2)
    lease = claim_one(store)
    if back != "reap":
        store.run(
            {
                "fail": calls.fail(lease, "boom", NOW),
                "snooze": calls.snooze(lease, timedelta(seconds=1)),
                "release": calls.release(lease),
                "replay": calls.bury(lease, "no"),
            }[back]
        )
    if back == "replay":
        store.run(calls.replay(job_id))
    clock.advance(MINUTE * 2)
    if back == "reap":
        store.run(calls.reap())
        clock.advance(MINUTE)
    store.run(calls.promote())

    assert expired(store) == set()
    assert claim_one(store).job_id == job_id


def test_a_scheduled_job_that_is_retried_now_still_expires(store, clock):
    job_id = enqueue(store, delay=MINUTE / 2, expires_in=MINUTE)
    store.run(calls.retry_now(job_id))
    clock.advance(MINUTE)

    assert claim_many(store) == []
    assert expired(store) == {job_id}


def test_what_a_worker_gives_back_as_unknown_still_expires(store, clock):
    job_id = enqueue(store, expires_in=MINUTE)
    store.run(calls.snooze_unknown(claim_one(store), timedelta(seconds=1)))
    clock.advance(MINUTE)

    assert expired(store) == {job_id}


def test_late_jobs_in_front_hold_up_no_other(store, clock):
    for _ in range(3):
        enqueue(store, expires_in=MINUTE)
    last = enqueue(store)
    clock.advance(MINUTE)

    assert [lease.job_id for lease in claim_many(store, 1)] == [last]


def test_a_sweep_has_a_bound_and_skips_what_is_held(store, clock, db, database):
    ids = [enqueue(store, expires_in=MINUTE) for _ in range(5)]
    clock.advance(MINUTE)
    with psycopg.connect(database, autocommit=True) as conn, db.transaction():
        conn.execute("set lock_timeout = '2s'")
        db.execute("select from faultline.active where id = %s for update", [ids[0]])
        assert len(Store.run_in(conn, calls.expire(2))) == 2
        assert len(Store.run_in(conn, calls.expire())) == 2
    assert expired(store) == {ids[0]}


def test_the_key_of_an_expired_job_lapses_as_of_any_other(store, clock):
    first = enqueue(store, key="k", key_for=NOW, expires_in=MINUTE)
    clock.advance(MINUTE)
    store.run(calls.expire())
    clock.advance(seconds=1)

    assert enqueue(store, key="k") != first


def test_an_expired_job_does_not_count_as_queued(store, clock):
    first = enqueue(store, key="k", key_rule="while_queued", expires_in=MINUTE)
    clock.advance(MINUTE)

    assert enqueue(store, key="k", key_rule="while_queued") != first


@pytest.mark.parametrize("form", [one, many, each])
def test_a_job_that_would_expire_before_it_is_due_is_refused(store, database, form):
    enqueue(store)
    before = row_counts(database)

    with pytest.raises(OutOfBounds, match="due at"):
        form(store, delay=MINUTE, expires_in=MINUTE)

    assert row_counts(database) == before


def test_a_job_that_is_late_when_it_comes_is_taken_and_ends(store, clock):
    job_id = enqueue(store, expires_at=clock.now() - MINUTE)

    assert claim_many(store) == []
    assert expired(store) == {job_id}
