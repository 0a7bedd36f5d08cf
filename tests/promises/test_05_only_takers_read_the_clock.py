"""Rule 5: late but not yet taken is still ours; completing never asks the time; it is the database's."""

import re
from datetime import timedelta

import pytest

from faultline.store import calls
from tests.promises.rewriting import shipped_source
from tests.promises.verbs import FENCED, OUTCOMES, SETTLING
from tests.support import LEASE, claim_many, claim_one, enqueue, outcomes

JUMPS = (timedelta(hours=10), timedelta(hours=-10))
OTHER_CLOCKS = re.compile(
    r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|\bcurrent_(time|date)|\blocaltime"
)


def lease_until(db, lease):
    return db.execute("select lease_until from faultline.active where id = %s", [lease.job_id]).fetchone()[0]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_lease_may_be_settled_hours_late_while_no_worker_took_it(store, clock, jump):
    for verb in SETTLING:
        enqueue(store, queue=verb)
        lease = claim_one(store, queues=(verb,))
        clock.advance(jump)

        store.run(calls.fence(lease))
        store.run(SETTLING[verb](lease))

        assert outcomes(store, lease.job_id) == [OUTCOMES[verb]]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_batch_may_be_settled_hours_late(store, clock, jump):
    enqueue(store)
    leases = claim_many(store)
    clock.advance(jump)

    assert store.run(calls.complete_many(leases, ["null"])) == []


def test_a_late_beat_is_as_good_as_an_early_one(store, clock, db):
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=10)

    (beat,) = store.run(calls.heartbeat([lease], LEASE))

    assert beat.answer == "held"
    assert lease_until(db, lease) > clock.now()
    assert store.run(calls.reap()) == []


def test_a_beat_in_an_old_transaction_counts_from_real_time(store, clock, db, session):
    """T4: by the transaction's own clock the new lease would already have run out when it is written."""
    enqueue(store)
    lease = claim_one(store)
    old = session()
    old.begin()
    old.sql("select 1")
    clock.advance(minutes=10)

    old.run(calls.heartbeat([lease], LEASE))
    old.commit()

    assert clock.now() < lease_until(db, lease) <= clock.now() + LEASE
    assert store.run(calls.reap()) == []


def test_the_one_clock_goes_on_inside_a_transaction(db, session):
    """The same with nothing replaced: `faultline.now()` is not the moment at which the transaction began."""
    old = session()
    old.begin()
    (first,) = old.sql("select faultline.now()")
    old.sql("select pg_sleep(0.01)")
    (second,) = old.sql("select faultline.now()")

    assert second[0] - first[0] >= timedelta(milliseconds=10)


def test_a_claim_and_a_completion_in_an_old_transaction_tell_real_times(store, clock, session):
    """T4, for the other verbs: what they note down is when it happened."""
    job = enqueue(store)
    old = session()
    old.begin()
    old.sql("select 1")
    clock.advance(minutes=10)
    began = clock.now()

    lease = claim_one(old)
    old.run(calls.complete(lease, "null"))
    old.commit()

    (entry,) = store.run(calls.history(job))
    assert began <= entry.claimed_at <= entry.settled_at <= clock.now()


def test_a_clock_that_goes_back_shortens_no_lease(store, clock, db):
    enqueue(store)
    lease = claim_one(store)
    before = lease_until(db, lease)
    clock.advance(hours=-1)

    store.run(calls.heartbeat([lease], LEASE))

    assert lease_until(db, lease) == before


def test_no_beat_moves_the_hard_deadline(store, clock, db):
    enqueue(store, timeout=timedelta(seconds=20))
    lease = claim_one(store)
    (deadline,) = db.execute("select deadline_at from faultline.active").fetchone()
    clock.advance(seconds=12)

    store.run(calls.heartbeat([lease], LEASE))

    assert lease_until(db, lease) == deadline
    clock.advance(seconds=9)
    store.run(calls.heartbeat([lease], LEASE))
    assert lease_until(db, lease) == deadline
    assert [late.job_id for late in store.run(calls.reap())] == [lease.job_id]


CLOCKS_AND_THEIR_JUDGE = ("now", "doctor")  # the doctor compares the real clocks, ours among them


def ours(db):
    return [
        name
        for (name,) in db.execute(
            "select proname from pg_proc where pronamespace = 'faultline'::regnamespace"
        )
    ]


def without_comments(source):
    return re.sub(r"--.*", "", source)


def test_there_is_one_clock_and_each_verb_reads_it_once(db):
    """Twice would let one verb disagree with itself; a second clock could not be moved in tests.

    A claim passes over what has expired before it locks, and looks again at the moment of its leases.
    """
    readings = {}
    for name in ours(db):
        source = without_comments(shipped_source(db, name))
        if name not in CLOCKS_AND_THEIR_JUDGE:
            assert not OTHER_CLOCKS.search(source.replace("faultline.now()", "")), name
        readings[name] = source.count("faultline.now()")

    twice = {
        name: times for name, times in readings.items() if times > 1 and name not in CLOCKS_AND_THEIR_JUDGE
    }
    assert twice == {"claim": 2}


@pytest.mark.parametrize(
    "verb", [*FENCED, "complete_many", "fail_many", "give_back", "put_back", "outcome", "refuse"]
)
def test_no_verb_that_settles_looks_at_a_leases_end(db, verb):
    source = without_comments(shipped_source(db, verb))

    assert "lease_until" not in source
    assert "deadline_at" not in source


def test_no_verb_of_a_worker_takes_a_time_from_it(db):
    """Durations only: a worker's clock may be wrong by a day and decides nothing."""
    verbs = [
        *FENCED,
        "complete_many",
        "fail_many",
        "claim",
        "heartbeat",
        "outcome",
        "refused",
        "reap",
        "round",
        "promote",
    ]
    told = db.execute(
        "select proname from pg_proc where pronamespace = 'faultline'::regnamespace and proname = any(%s)"
        " and proargtypes::oid[] &&"
        " array['timestamptz'::regtype, 'timestamp'::regtype, 'faultline.moment'::regtype]::oid[]",
        [verbs],
    ).fetchall()

    assert told == []
