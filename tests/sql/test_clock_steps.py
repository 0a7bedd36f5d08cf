"""The database's clock is set: leases, retries and deadlines go on as durations, and it is told."""

import threading
from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from tests.support import LEASE, claim_one, enqueue, outcomes, state_of

TICK = timedelta(seconds=1)
BACK = timedelta(hours=-2)


@pytest.fixture
def rounds(store, clock):
    """Rounds have been made for a while; gives one that makes some more."""
    clock.advance(days=2)  # the server is not young

    def make(times=1):
        reaped = []
        for _ in range(times):
            clock.advance(TICK)
            assert store.run(calls.round_(TICK))
            reaped += store.run(calls.reap())
        return reaped

    make(3)
    return make


def left(db, column="lease_until", table="active"):
    """Until then, from now."""
    return db.execute(f"select {column} - faultline.now() from faultline.{table}").fetchone()[0]


def test_set_back_a_killed_workers_jobs_come_back_within_a_lease(store, clock, db, rounds):
    enqueue(store)
    held = claim_one(store)
    clock.advance(BACK)

    reaped = rounds(int(LEASE / TICK) + 5)

    assert [late.token for late in reaped] == [held.token]


def test_set_back_a_worker_that_beats_keeps_its_lease_and_its_deadline(store, clock, db, rounds):
    enqueue(store, timeout=timedelta(minutes=5))
    held = claim_one(store)
    rounds(5)
    deadline = left(db, "deadline_at")
    clock.advance(BACK)

    for _ in range(20):
        assert rounds(5) == []
        (beat,) = store.run(calls.heartbeat([held], LEASE))
        assert beat.answer == "held"
        assert left(db) <= LEASE

    assert deadline - timedelta(seconds=130) < left(db, "deadline_at") < deadline


def test_set_back_a_longer_lease_than_the_default_keeps_what_was_left_of_it(store, clock, db, rounds):
    """The holder has no worker's number: the lease's length is unknown, what was left of it is known."""
    enqueue(store)
    claim_one(store, lease=timedelta(minutes=30))
    clock.advance(BACK)

    assert rounds(int(LEASE / TICK) + 5) == []
    assert left(db) < timedelta(minutes=30)


@pytest.mark.parametrize("way", ["retry", "snooze"])
def test_set_back_what_waits_for_its_next_attempt_waits_no_longer(store, clock, db, rounds, way):
    enqueue(store)
    held = claim_one(store)
    if way == "retry":
        store.run(calls.fail(held, "broken", timedelta(minutes=10)))
    else:
        store.run(calls.snooze(held, timedelta(minutes=10)))
    rounds(5)
    clock.advance(BACK)

    rounds(2)

    assert timedelta(minutes=9) < left(db, "run_at", "later") < timedelta(minutes=10)


def test_set_back_a_retry_of_the_new_clock_keeps_its_time(store, clock, db, rounds):
    enqueue(store)
    held = claim_one(store)
    clock.advance(BACK)
    store.run(calls.fail(held, "broken", timedelta(minutes=10)))

    rounds(2)

    assert timedelta(minutes=9) < left(db, "run_at", "later") < timedelta(minutes=10)


def test_set_back_a_moment_that_a_client_chose_stays(store, clock, db, rounds):
    chosen = clock.now() + timedelta(hours=5)
    enqueue(store, run_at=chosen)
    clock.advance(BACK)

    rounds(2)

    assert db.execute("select run_at from faultline.later").fetchone() == (chosen,)


def test_set_back_a_claim_of_the_new_clock_keeps_its_lease_and_deadline(store, clock, db, rounds):
    enqueue(store, timeout=timedelta(minutes=5))
    clock.advance(BACK)
    claim_one(store)

    assert rounds(2) == []

    assert LEASE - timedelta(seconds=5) < left(db) <= LEASE
    assert timedelta(minutes=4) < left(db, "deadline_at") <= timedelta(minutes=5)


def test_set_back_another_watchdog_may_lead_soon(store, clock, rounds):
    assert store.run(calls.lead(1))
    clock.advance(BACK)
    rounds(1)
    clock.advance(seconds=11)

    assert store.run(calls.lead(2))


def test_set_back_floors_are_raised_again(store, clock, db, rounds):
    db.execute("update faultline.lanes set candidate = 1, candidate_at = faultline.now()")
    enqueue(store)
    db.execute("update faultline.lanes set candidate = 1, candidate_at = faultline.now(), top = 1")
    db.execute("select setval('faultline.places', 20000)")
    db.execute("update faultline.active set pos = 20000")
    clock.advance(BACK)
    for _ in range(3):
        store.run(calls.floors())
        clock.advance(seconds=2)

    assert db.execute("select floor from faultline.lanes").fetchone() == (20000,)


def test_set_forward_live_jobs_that_beat_are_not_taken(store, clock, db, rounds):
    """One hour: past every lease, and past the deadline of an hour's timeout."""
    job = enqueue(store)
    held = claim_one(store)
    rounds(10)
    deadline = left(db, "deadline_at")
    clock.advance(hours=1)

    for _ in range(20):
        store.run(calls.heartbeat([held], LEASE))
        assert rounds(5) == []

    assert deadline - timedelta(seconds=150) < left(db, "deadline_at") < deadline
    assert outcomes(store, job) == []
    assert state_of(store, job) == "running"


def test_set_forward_a_killed_workers_jobs_come_back_within_a_lease(store, clock, rounds):
    enqueue(store)
    held = claim_one(store)
    clock.advance(hours=1)

    reaped = rounds(int(LEASE / TICK) + 3)

    assert [late.token for late in reaped] == [held.token]


def test_a_row_that_is_locked_in_a_step_holds_up_no_round(store, clock, db, rounds, database):
    enqueue(store)
    claim_one(store)
    with psycopg.connect(database) as other:
        other.execute("select from faultline.active for update")
        clock.advance(hours=1)
        rounds(1)
        clock.advance(BACK)
        rounds(1)


@pytest.mark.parametrize("table", ["active", "later"])
def test_what_is_locked_for_a_moment_of_the_step_is_moved_too(store, clock, db, rounds, database, table):
    """A beat or the next look moves it: otherwise it lasts longer by the whole step."""
    enqueue(store)
    held = claim_one(store)
    if table == "later":
        store.run(calls.fail(held, "broken", timedelta(minutes=10)))
    with psycopg.connect(database) as other:
        other.execute(f"select from faultline.{table} for update")
        clock.advance(BACK)
        # In one message: the server lets go by itself, however busy we are.
        letting_go = threading.Thread(target=other.execute, args=["select pg_sleep(0.2); commit"])
        letting_go.start()
        rounds(1)
        letting_go.join()

    column = "lease_until" if table == "active" else "run_at"
    assert left(db, column, table) < timedelta(minutes=11)  # a step is measured to some milliseconds


def test_a_retry_that_is_locked_in_a_step_holds_up_no_round(store, clock, rounds, database):
    enqueue(store)
    store.run(calls.fail(claim_one(store), "broken", timedelta(minutes=10)))
    with psycopg.connect(database) as other, psycopg.connect(database, autocommit=True) as making:
        other.execute("select from faultline.later for update")
        clock.advance(BACK)
        making.execute("set statement_timeout = '60s'")

        assert making.execute("select mine from faultline.round('1 second')").fetchone() == (True,)


def test_a_round_tells_of_a_clock_that_was_set_back_and_of_another_era(store, clock, db, rounds):
    clock.advance(BACK)
    made = store.run(calls.make_round(TICK))
    assert made.mine
    assert BACK - TICK < made.stepped < BACK + TICK * 3
    assert made.era_before == made.era

    db.execute("update faultline.rounds set era = era - 1")
    clock.advance(TICK)
    made = store.run(calls.make_round(TICK))
    assert made.stepped is None
    assert made.era_before == made.era - 1

    assert not store.run(calls.make_round(TICK)).mine
