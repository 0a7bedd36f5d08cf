"""Rule 6: only reap takes leases that ran out, by the path of a reported failure; a crash counts once."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from tests.promises.sessions import told_at_once
from tests.promises.verbs import reaped_lease
from tests.support import LEASE, NOW, claim_many, claim_one, enqueue, outcomes, state_of


def counts(db):
    """Attempts and crashes of the one job, wherever it waits."""
    return db.execute(
        "select attempt, crashes from faultline.later union all select attempt, crashes from faultline.dead"
    ).fetchall()


def test_a_claim_never_takes_a_lease_that_ran_out(store, clock):
    enqueue(store)
    claim_one(store)
    clock.advance(hours=1)

    assert claim_many(store) == []


def test_a_crash_goes_the_way_of_a_reported_failure(store, clock, db):
    """Side by side: one job fails, one job's worker dies. They differ in the error and the crash count."""
    failing, crashing = enqueue(store), enqueue(store)
    reported, silent = claim_one(store), claim_one(store)
    store.run(calls.fail(reported, "boom", NOW))
    clock.advance(LEASE * 2)
    store.run(calls.reap())

    told = dict(
        db.execute(
            "select id, row(attempt, max_attempts, crashes, error)::text from faultline.later"
        ).fetchall()
    )
    assert told == {failing: "(1,5,0,boom)", crashing: '(1,5,1,"lease expired")'}
    assert outcomes(store, failing) == ["failed"]
    assert outcomes(store, crashing) == ["expired"]
    (entry,) = store.run(calls.history(silent.job_id))
    assert (entry.token, entry.error) == (silent.token, "lease expired")


def test_a_crash_of_the_last_attempt_ends_among_the_dead(store, clock, db):
    job = enqueue(store, max_attempts=1)
    claim_one(store)
    clock.advance(LEASE * 2)

    (late,) = store.run(calls.reap())

    assert late.died
    assert state_of(store, job) == "dead"
    assert counts(db) == [(1, 1)]
    assert outcomes(store, job) == ["dead"]


def test_a_job_that_kills_every_worker_is_not_a_loop(store, clock):
    job = enqueue(store, max_attempts=3)
    crashes = 0
    while state_of(store, job) != "dead":
        claim_one(store)
        clock.advance(LEASE * 2)
        crashes += len(store.run(calls.reap()))
        clock.advance(minutes=5)
        store.run(calls.promote())

    assert crashes == 3


def test_the_delay_after_a_crash_doubles_from_nothing_to_five_minutes(db):
    delays = db.execute(
        "select extract(epoch from faultline.crash_delay(n))::int from unnest(%s::int[]) as n",
        [[0, 1, 2, 3, 4, 5, 10, 11, 12, 100, 32767, 2147483647]],
    ).fetchall()

    assert [seconds for (seconds,) in delays] == [0, 0, 1, 2, 4, 8, 256, 300, 300, 300, 300, 300]


def test_a_first_crash_waits_for_nothing(store, clock):
    asleep = reaped_lease(store, clock)
    store.run(calls.promote())

    assert claim_one(store).job_id == asleep.job_id


def test_a_second_reaper_finds_nothing_while_the_first_is_still_at_it(store, clock, session, db):
    for _ in range(3):
        enqueue(store)
    claim_many(store)
    clock.advance(LEASE * 2)
    first = session()
    first.begin()
    reaped = first.run(calls.reap())

    assert session().run_at_once(calls.reap()) == []

    first.commit()
    assert len(reaped) == 3
    assert session().run_at_once(calls.reap()) == []
    assert counts(db) == [(1, 1)] * 3


def test_twenty_reapers_at_once_count_every_crash_once(store, clock, db):
    jobs = [enqueue(store) for _ in range(100)]
    claim_many(store)
    clock.advance(LEASE * 2)

    told = told_at_once([lambda: store.run(calls.reap())] * 20)

    reaped = [late.job_id for answer in told for late in answer]
    assert sorted(reaped) == jobs
    assert counts(db) == [(1, 1)] * 100
    assert db.execute("select count(*), count(distinct job_id) from faultline.ledger").fetchone() == (
        100,
        100,
    )


def test_a_beat_that_is_under_way_is_neither_overtaken_nor_waited_for(store, clock, session):
    """A reaper that looks first and locks later takes a lease that was just renewed."""
    enqueue(store)
    lease = claim_one(store)
    clock.advance(LEASE * 2)
    worker = session()
    worker.begin()
    worker.run(calls.heartbeat([lease], LEASE))

    assert session().run_at_once(calls.reap()) == []
    worker.commit()

    assert store.run(calls.reap()) == []
    store.run(calls.complete(lease, "null"))


def test_a_completion_that_is_under_way_is_neither_undone_nor_waited_for(store, clock, session):
    """One slow commit must not stall the recovery of all other jobs."""
    slow, crashed = enqueue(store), enqueue(store)
    lease, _ = claim_one(store), claim_one(store)
    clock.advance(LEASE * 2)
    worker = session()
    worker.begin()
    worker.run(calls.complete(lease, "null"))

    reaped = session().run_at_once(calls.reap())
    worker.commit()

    assert [late.job_id for late in reaped] == [crashed]
    assert store.run(calls.reap()) == []
    assert outcomes(store, slow) == ["succeeded"]


@pytest.mark.parametrize("room", [1, 7])
def test_a_bounded_reap_takes_no_more_than_asked(store, clock, room):
    for _ in range(10):
        enqueue(store)
    claim_many(store)
    clock.advance(LEASE * 2)

    assert len(store.run(calls.reap(most=room))) == room


def test_a_lease_that_has_not_run_out_is_left_alone(store, clock):
    enqueue(store)
    claim_one(store)
    clock.advance(LEASE - timedelta(seconds=1))

    assert store.run(calls.reap()) == []


def test_a_reap_that_would_have_to_wait_gives_up_within_a_tick(store, clock, session):
    """A bad migration holds the whole table: reapers must not pile up behind it."""
    asleep = reaped_lease(store, clock)
    store.run(calls.promote())
    claim_one(store)
    clock.advance(LEASE * 2)
    migration, reaper = session(), session()
    migration.begin()
    migration.sql("lock table faultline.active in access exclusive mode")

    with pytest.raises(psycopg.errors.LockNotAvailable):
        reaper.start_waiting(calls.reap(), behind=migration).result(1)

    migration.commit()
    assert [late.job_id for late in store.run(calls.reap())] == [asleep.job_id]
