"""running -> succeeded, singly: the job's end, once, and only by the lease that holds it."""

import threading
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import BadDocument, LeaseLost
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, all_at_once, claim_one, enqueue, outcomes, row_counts, state_of, worker_named


def taken_twice(store, clock):
    """An old lease that ran out, and the newer one of the same job."""
    enqueue(store)
    asleep = claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())
    return asleep, claim_one(store)


def test_a_completed_job_has_succeeded_with_its_result(store):
    worker = worker_named(store, "ada")
    job_id = enqueue(store, args='{"n": 1}')
    lease = claim_one(store, worker=worker)

    store.run(calls.complete(lease, '{"sent": true}'))

    job = store.run(calls.get(job_id))
    assert (job.state, job.result, job.args) == ("succeeded", {"sent": True}, {"n": 1})
    assert (job.worker, job.token, job.attempt) == ("ada", lease.token, 1)
    assert job.finished_at >= job.claimed_at


def test_finishing_deletes_the_active_row_and_makes_one_entry(store, database):
    enqueue(store)

    store.run(calls.complete(claim_one(store), "null"))

    counts = row_counts(database)
    assert (counts["active"], counts["ledger"]) == (0, 1)


def test_a_job_completes_once(store):
    job_id = enqueue(store)
    lease = claim_one(store)
    store.run(calls.complete(lease, "1"))

    with pytest.raises(LeaseLost) as lost:
        store.run(calls.complete(lease, "2"))

    assert lost.value.reason == "settled"
    assert store.run(calls.get(job_id)).result == 1


def test_a_worker_that_wakes_late_cannot_complete(store, clock):
    asleep, awake = taken_twice(store, clock)

    with pytest.raises(LeaseLost) as lost:
        store.run(calls.complete(asleep, '"late"'))
    store.run(calls.complete(awake, '"on time"'))

    assert (lost.value.token, lost.value.current_token) == (asleep.token, awake.token)
    assert lost.value.reason == "token_mismatch"
    assert store.run(calls.get(awake.job_id)).result == "on time"


def test_a_worker_that_wakes_after_the_other_finished_cannot_complete(store, clock):
    asleep, awake = taken_twice(store, clock)
    store.run(calls.complete(awake, '"on time"'))

    with pytest.raises(LeaseLost) as lost:
        store.run(calls.complete(asleep, '"late"'))

    assert (lost.value.reason, lost.value.current_token) == ("token_mismatch", awake.token)
    assert outcomes(store, awake.job_id) == ["expired", "succeeded"]


def test_late_but_not_yet_taken_is_still_ours(store, clock):
    """Completing never reads the clock."""
    job_id = enqueue(store)
    lease = claim_one(store)
    clock.advance(days=3)

    store.run(calls.complete(lease, "null"))

    assert state_of(store, job_id) == "succeeded"


def test_the_right_token_with_another_claim_is_refused(store):
    """A token issued twice, by an old backup or a lossy failover, is harmless."""
    job_id = enqueue(store)
    lease = claim_one(store)

    with pytest.raises(LeaseLost):
        store.run(calls.complete(lease._replace(claim=uuid4()), "null"))

    assert state_of(store, job_id) == "running"


def test_the_right_claim_with_another_job_is_refused(store):
    enqueue(store), enqueue(store)
    one, other = claim_one(store), claim_one(store)

    with pytest.raises(LeaseLost):
        store.run(calls.complete(one._replace(job_id=other.job_id), "null"))

    assert state_of(store, other.job_id) == "running"


def test_a_refusal_never_tells_the_claim(store, clock):
    asleep, awake = taken_twice(store, clock)

    with pytest.raises(LeaseLost) as lost:
        store.run(calls.complete(asleep, "null"))

    said = f"{lost.value!r} {lost.value} {lost.value.__cause__}"
    assert str(awake.claim) not in said
    assert str(asleep.claim) not in said


def test_a_refusal_rolls_back_what_the_transaction_wrote(store, clock, database, db):
    """Effects commit with the transition, or not at all."""
    db.execute("create table paid (job_id bigint)")
    asleep, awake = taken_twice(store, clock)

    with psycopg.connect(database) as conn, pytest.raises(LeaseLost):
        conn.execute("insert into paid values (%s)", [asleep.job_id])
        Store.run_in(conn, calls.complete(asleep, "null"))
    with psycopg.connect(database) as conn:
        conn.execute("insert into paid values (%s)", [awake.job_id])
        Store.run_in(conn, calls.complete(awake, "null"))

    assert db.execute("select count(*) from paid").fetchone()[0] == 1


def test_50_completions_of_one_job_at_once_let_one_through(store):
    job_id = enqueue(store)
    lease = claim_one(store)

    def complete(n):
        try:
            store.run(calls.complete(lease, str(n)))
        except LeaseLost as lost:
            return lost.reason
        return "through"

    answers = all_at_once(50, complete)

    assert sorted(set(answers)) == ["settled", "through"]
    assert answers.count("through") == 1
    assert store.run(calls.get(job_id)).result == answers.index("through")


def test_complete_fail_and_cancel_at_once_leave_one_end(store):
    job_id = enqueue(store, max_attempts=1)
    lease = claim_one(store)
    acts = [
        calls.complete(lease, "1"),
        calls.fail(lease, "boom", NOW),
        calls.bury(lease, "no use"),
        calls.cancel_claimed(lease),
    ]

    def act(n):
        try:
            store.run(acts[n])
        except LeaseLost:
            return 0
        return 1

    assert sum(all_at_once(4, act)) == 1
    assert len(outcomes(store, job_id)) == 1


@pytest.mark.parametrize("result", ["{", '"\\u0000"', "NaN"])
def test_a_result_that_is_no_document_is_refused_and_the_job_stays_ours(store, result):
    job_id = enqueue(store)
    lease = claim_one(store)

    with pytest.raises(BadDocument):
        store.run(calls.complete(lease, result))

    assert state_of(store, job_id) == "running"
    store.run(calls.complete(lease, "null"))


def test_the_fence_passes_for_the_holder_and_changes_nothing(store, database):
    enqueue(store)
    lease = claim_one(store)
    before = row_counts(database)

    store.run(calls.fence(lease))

    assert row_counts(database) == before


def test_the_fence_refuses_every_other_lease(store, clock):
    asleep, awake = taken_twice(store, clock)

    with pytest.raises(LeaseLost):
        store.run(calls.fence(asleep))
    with pytest.raises(LeaseLost):
        store.run(calls.fence(awake._replace(claim=uuid4())))


def test_between_fence_and_commit_no_other_takes_the_job(store, clock, database):
    """A bare SELECT would let a claim pass in between; the row's lock does not."""
    job_id = enqueue(store)
    lease = claim_one(store)

    with psycopg.connect(database) as conn:
        Store.run_in(conn, calls.fence(lease))
        clock.advance(minutes=1)
        reaped = store.run(calls.reap())
        Store.run_in(conn, calls.complete(lease, "null"))

    assert reaped == []
    assert state_of(store, job_id) == "succeeded"


def test_a_fence_that_waited_behind_a_reaper_is_refused(store, clock, database):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=1)
    answer = []

    with psycopg.connect(database) as reaper:
        Store.run_in(reaper, calls.reap())
        late = threading.Thread(target=lambda: answer.append(refused(store, lease)))
        late.start()
        late.join(0.2)
        waiting = late.is_alive()
        reaper.commit()
        late.join(60)

    assert waiting
    assert answer == [True]


def refused(store, lease):
    try:
        store.run(calls.fence(lease))
    except LeaseLost:
        return True
    return False


def test_a_reaper_that_comes_second_finds_nothing(store, clock, database):
    job_id = enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=1)

    with psycopg.connect(database) as conn:
        Store.run_in(conn, calls.complete(lease, "null"))
        during = store.run(calls.reap())
    after = store.run(calls.reap())

    assert during == after == []
    assert state_of(store, job_id) == "succeeded"


def test_at_repeatable_read_a_stale_fence_is_never_a_success(store, clock, database):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=1)

    with psycopg.connect(database) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.execute("select 1")
        store.run(calls.reap())

        with pytest.raises((LeaseLost, psycopg.errors.SerializationFailure)):
            Store.run_in(conn, calls.fence(lease))


def test_a_long_transaction_counts_the_lease_from_real_time(store, database):
    """`now()` stands still inside a transaction; our clock does not."""
    enqueue(store)

    with psycopg.connect(database) as conn:
        began = conn.execute("select now()").fetchone()[0]
        conn.execute("select pg_sleep(0.2)")
        Store.run_in(conn, calls.claim(["default"], 1, lease=timedelta(seconds=1), claim=uuid4()))
        claimed_at = conn.execute("select claimed_at from faultline.active").fetchone()[0]

    assert claimed_at - began >= timedelta(seconds=0.2)
