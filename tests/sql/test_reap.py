"""running -> queued | dead: the one recovery mechanism."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import (
    LEASE,
    all_at_once,
    claim_many,
    claim_one,
    enqueue,
    holding,
    new_job,
    outcomes,
    row_counts,
    state_of,
    worker_named,
)


def crash(store, clock):
    """Claim the next job and let its lease run out."""
    store.run(calls.promote())
    lease = claim_one(store)
    clock.advance(LEASE + timedelta(seconds=1))
    store.run(calls.reap())
    return lease


def test_an_expired_lease_goes_back_through_the_retry_path(store, clock):
    worker = worker_named(store, "ada")
    job_id = enqueue(store, task="charge", queue="billing")
    lease = claim_one(store, queues=("billing",), worker=worker)
    clock.advance(LEASE + timedelta(seconds=1))

    reaped = store.run(calls.reap())

    assert reaped == [(job_id, lease.token, worker, "charge", "billing", False)]
    job = store.run(calls.get(job_id))
    assert (job.state, job.error, job.attempt, job.crashes) == ("queued", "lease expired", 1, 1)
    (entry,) = store.run(calls.history(job_id))
    assert (entry.outcome, entry.worker, entry.token, entry.error) == (
        "expired",
        "ada",
        lease.token,
        "lease expired",
    )


def test_a_lease_that_has_not_run_out_is_left_alone(store, clock):
    job_id = enqueue(store)
    claim_one(store)
    clock.advance(seconds=14)

    assert store.run(calls.reap()) == []
    assert state_of(store, job_id) == "running"


def test_a_renewed_lease_is_left_alone(store, clock):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(seconds=14)
    store.run(calls.heartbeat([lease], LEASE))
    clock.advance(seconds=14)

    assert store.run(calls.reap()) == []


def test_jobs_that_wait_are_no_business_of_the_reapers(store, clock, database):
    enqueue(store)
    enqueue(store, delay=timedelta(minutes=1))
    clock.advance(days=1)
    before = row_counts(database)

    assert store.run(calls.reap()) == []
    assert row_counts(database) == before


def test_after_its_hard_end_no_beat_keeps_a_job_from_the_reaper(store, clock):
    enqueue(store, timeout=timedelta(seconds=30))
    lease = claim_one(store)
    for _ in range(4):
        clock.advance(seconds=10)
        store.run(calls.heartbeat([lease], LEASE))

    (reaped,) = store.run(calls.reap())

    assert reaped.job_id == lease.job_id


def test_the_first_crash_costs_no_delay_and_then_it_doubles_up_to_five_minutes(store, clock):
    job_id = enqueue(store, max_attempts=20)
    delays = []

    for _ in range(12):
        crash(store, clock)
        delays.append(round((store.run(calls.get(job_id)).run_at - clock.now()).total_seconds()))
        clock.advance(minutes=5)

    assert delays == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


@pytest.mark.parametrize("crashes", [0, 1, 2, 20, 200, 32767, 2**31 - 1])
def test_no_number_of_crashes_makes_the_delay_negative_or_endless(db, crashes):
    delay = db.execute("select faultline.crash_delay(%s::int)", [crashes]).fetchone()[0]

    assert timedelta(0) <= delay <= timedelta(minutes=5)


def test_a_job_that_kills_its_workers_dies_with_its_attempts(store, clock):
    job_id = enqueue(store, max_attempts=2)
    crash(store, clock)
    lease = claim_after(store, clock)

    (reaped,) = store.run(calls.reap())

    assert reaped == (job_id, lease.token, None, "test_task", "default", True)
    job = store.run(calls.get(job_id))
    assert (job.state, job.error, job.crashes) == ("dead", "out of attempts: lease expired", 2)
    assert outcomes(store, job_id) == ["expired", "dead"]


def claim_after(store, clock):
    store.run(calls.promote())
    lease = claim_one(store)
    clock.advance(minutes=1)
    return lease


def test_an_expired_row_that_is_locked_is_skipped(store, clock, database):
    """A blocking reaper would stall all recovery behind one slow commit."""
    store.run(calls.enqueue_many([new_job() for _ in range(2)]))
    held, free = claim_many(store)
    clock.advance(minutes=1)

    with holding(database, held.job_id):
        reaped = store.run(calls.reap())

    assert [row.job_id for row in reaped] == [free.job_id]
    assert state_of(store, held.job_id) == "running"
    assert [row.job_id for row in store.run(calls.reap())] == [held.job_id]


def test_many_reapers_at_once_take_each_lease_once(store, clock):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(60)]))
    claim_many(store)
    clock.advance(minutes=1)

    reaped = all_at_once(8, lambda _: store.run(calls.reap(most=20)))

    assert sorted(row.job_id for batch in reaped for row in batch) == ids
    assert {job.crashes for job in store.run(calls.list_jobs(most=60))} == {1}


def test_a_reaper_takes_no_more_than_asked(store, clock):
    store.run(calls.enqueue_many([new_job(priority=n % 3) for n in range(1)]))
    for priority in range(3):
        store.run(calls.enqueue_many([new_job(priority=priority) for _ in range(5)]))
    claim_many(store)
    clock.advance(minutes=1)

    assert len(store.run(calls.reap(most=4))) == 4


def test_a_reaped_job_keeps_its_token_and_loses_its_lease(store, clock):
    enqueue(store)

    lease = crash(store, clock)

    job = store.run(calls.get(lease.job_id))
    assert (job.token, job.lease_until, job.worker) == (lease.token, None, None)


def test_nothing_is_reaped_while_fire_is_held(store, clock, db):
    job_id = enqueue(store)
    claim_one(store)
    clock.advance(minutes=1)
    db.execute("update faultline.rounds set hold_until = faultline.now() + interval '15 seconds'")

    held = store.run(calls.reap())
    clock.advance(seconds=16)
    after = store.run(calls.reap())

    assert held == []
    assert [row.job_id for row in after] == [job_id]


def test_a_lease_past_the_lanes_top_is_found_within_a_minute(store, clock, db):
    """`top` is a hint: a claim that could not raise it leaves its leases to the long walk."""
    store.run(calls.reap())
    enqueue(store)
    with db.transaction():
        db.execute("select from faultline.lanes for update")
        lease = claim_one(store)
    clock.advance(seconds=30)
    soon = store.run(calls.reap())
    clock.advance(seconds=40)

    within_a_minute = store.run(calls.reap())

    assert soon == []
    assert [row.job_id for row in within_a_minute] == [lease.job_id]


def test_the_long_walk_comes_back_after_the_clock_was_set_back(store, clock, db):
    store.run(calls.reap())
    clock.advance(hours=-2)
    enqueue(store)
    with db.transaction():
        db.execute("select from faultline.lanes for update")
        lease = claim_one(store)
    clock.advance(minutes=2)

    assert [row.job_id for row in store.run(calls.reap())] == [lease.job_id]


def test_a_claim_raises_the_top_over_what_it_took(store, db):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))

    leases = claim_many(store)

    top = db.execute("select top from faultline.lanes").fetchone()[0]
    assert top == leases[-1].job_id + 5000


def test_the_top_is_written_once_in_thousands_of_places(store, db):
    store.run(calls.enqueue_many([new_job() for _ in range(50)]))

    tops = set()
    for _ in range(50):
        claim_one(store)
        tops.add(db.execute("select top from faultline.lanes").fetchone()[0])

    assert len(tops) == 1


def test_a_reaper_does_not_wait_for_another_one(store, clock, database):
    """The reaper on the long walk holds the row that counts the rounds."""
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=2)

    with psycopg.connect(database) as other:
        other.execute("select from faultline.rounds for update")
        reaped = store.run(calls.reap())

    assert [row.job_id for row in reaped] == [lease.job_id]


def test_a_reaper_waits_for_a_lock_less_than_a_tick(store, clock, database):
    """It gives up and has its next turn: one held lock must not stall all recovery."""
    enqueue(store, key="k", max_attempts=1)
    claim_one(store)
    clock.advance(minutes=2)

    with psycopg.connect(database) as other:
        other.execute("select from faultline.keys for update")

        with pytest.raises(psycopg.errors.LockNotAvailable):
            store.run(calls.reap())


def test_a_reap_that_rolls_back_took_nothing(store, clock, database):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=1)

    with psycopg.connect(database) as watchdog:
        Store.run_in(watchdog, calls.reap())
        watchdog.rollback()

    assert state_of(store, lease.job_id) == "running"
    store.run(calls.complete(lease, "null"))
