"""Rule 6: after an outage all leases look expired though all workers are well; no lease is reaped for it."""

from datetime import timedelta

import pytest

from faultline.store import calls
from tests.promises.sessions import told_at_once
from tests.support import LEASE, claim_one, enqueue

TICK = timedelta(seconds=1)
pytestmark = pytest.mark.usefixtures("old_server")


def settle_in(store):
    """A first round has been done, as on any server that has been working."""
    assert store.run(calls.round_(TICK))


def test_after_a_long_silence_no_lease_is_reaped_for_one_lease(store, clock):
    settle_in(store)
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=5)  # the database was away: no round, no beat

    assert store.run(calls.round_(TICK))
    assert store.run(calls.reap()) == []
    (beat,) = store.run(calls.heartbeat([lease], LEASE))

    assert beat.answer == "held"
    for _ in range(int(LEASE / TICK) - 1):
        clock.advance(TICK)
        assert store.run(calls.round_(TICK))
        assert store.run(calls.reap()) == []


def test_a_worker_that_does_not_come_back_within_that_lease_is_reaped(store, clock):
    settle_in(store)
    enqueue(store)
    lease = claim_one(store)
    clock.advance(minutes=5)
    store.run(calls.round_(TICK))

    reaped = []
    for _ in range(int(LEASE / TICK) + 1):
        clock.advance(TICK)
        assert store.run(calls.round_(TICK))
        reaped += store.run(calls.reap())

    assert [late.token for late in reaped] == [lease.token]


def test_a_worker_that_finds_the_new_primary_late_keeps_its_lease(store, clock):
    """Why the hold is a whole lease, though the others are back at once.

    Its session is silent, not broken: a third of a lease passes before it asks elsewhere, as long again until
    a host that does not answer is given up, then a pause and the beat itself.
    """
    settle_in(store)
    enqueue(store)
    enqueue(store)
    prompt, late = claim_one(store), claim_one(store)
    clock.advance(LEASE * 4 / 3)  # the primary freezes, a standby is promoted, the first worker finds it

    assert store.run(calls.round_(TICK))
    store.run(calls.heartbeat([prompt], LEASE))
    taken = []
    for _ in range(int(LEASE * 0.85 / TICK)):
        clock.advance(TICK)
        store.run(calls.round_(TICK))
        store.run(calls.heartbeat([prompt], LEASE))
        taken += store.run(calls.reap())
    (beat,) = store.run(calls.heartbeat([late], LEASE))

    assert (taken, beat.answer) == ([], "held")


def test_rounds_that_go_on_hold_no_fire(store, clock):
    settle_in(store)
    enqueue(store)
    lease = claim_one(store)

    for _ in range(3):
        clock.advance(LEASE / 2 - timedelta(seconds=1))
        assert store.run(calls.round_(TICK))

    assert [late.token for late in store.run(calls.reap())] == [lease.token]


@pytest.mark.parametrize(
    ("tick", "gap", "holds"),
    [
        (timedelta(seconds=1), timedelta(seconds=7), False),
        (timedelta(seconds=1), timedelta(seconds=8), True),
        (timedelta(seconds=4), timedelta(seconds=11), False),
        (timedelta(seconds=4), timedelta(seconds=13), True),
    ],
    ids=["under half a lease", "over half a lease", "under three ticks", "over three ticks"],
)
def test_a_silence_is_half_a_lease_or_three_ticks_whichever_is_longer(store, clock, db, tick, gap, holds):
    settle_in(store)
    clock.advance(gap)

    assert store.run(calls.round_(tick))

    (held,) = db.execute("select hold_until > faultline.now() from faultline.rounds").fetchone()
    assert held == holds


def test_a_silence_is_measured_by_the_lease_that_was_configured(store, clock, db):
    store.run(calls.configure(default_lease=timedelta(minutes=10)))
    settle_in(store)
    clock.advance(minutes=4)

    assert store.run(calls.round_(TICK))

    assert db.execute("select hold_until > faultline.now() from faultline.rounds").fetchone() == (False,)


def test_a_young_server_holds_fire_until_it_is_one_lease_old(store, clock, db):
    db.execute(
        "create or replace function test_start() returns timestamptz language sql as"
        " $$ select clock_timestamp() - interval '2 seconds' $$"
    )
    settle_in(store)

    held = [
        db.execute("select hold_until > faultline.now() + %s from faultline.rounds", [wait]).fetchone()
        for wait in (LEASE - timedelta(seconds=10), LEASE - timedelta(seconds=1))
    ]

    assert held == [(True,), (False,)]


def test_a_round_is_done_by_one_of_all_that_ask(store, clock):
    settle_in(store)
    clock.advance(TICK)

    told = told_at_once([lambda: store.run(calls.round_(TICK))] * 20)

    assert sorted(told) == [False] * 19 + [True]


def test_no_watchdog_waits_for_the_round_of_another(store, clock, session):
    settle_in(store)
    clock.advance(TICK)
    first = session()
    first.begin()
    assert first.run(calls.round_(TICK))

    assert session().run_at_once(calls.round_(TICK)) is False


def test_a_round_comes_once_a_tick(store, clock):
    tick = TICK * 100  # the clock goes on by itself, too, while a busy machine takes its time
    settle_in(store)
    clock.advance(tick * 0.9)
    assert store.run(calls.round_(tick)) is False
    clock.advance(tick * 0.2)
    assert store.run(calls.round_(tick)) is True


# leases shorter and longer than the default


SHORT_TICK = timedelta(seconds=0.5)


def worker_with(store, lease):
    """A worker whose beats ask for such leases."""
    number = store.run(calls.worker_started("w", "host", 1, ["default"], 10, "1"))
    store.run(calls.heartbeat([], lease, number))
    return number


def rounds_for(store, clock, time, tick=SHORT_TICK, step=None):
    """Rounds at each tick, or each step, for so long; what they reaped."""
    reaped = []
    step = step or tick
    for _ in range(int(time / step)):
        clock.advance(step)
        store.run(calls.round_(tick))
        reaped += store.run(calls.reap())
    return reaped


@pytest.mark.parametrize("seconds", [2, 4, 60, 600, 3600])
def test_after_a_gap_each_lease_has_its_own_time_again(store, clock, seconds):
    """Three leases without the database: longer ones have not had a beat after one default lease, and gaps
    that are short by the default are long for the shortest."""
    lease = timedelta(seconds=seconds)
    tick = min(lease / 4, TICK)
    worker = worker_with(store, lease)
    store.run(calls.round_(tick))
    enqueue(store)
    held = claim_one(store, lease=lease, worker=worker)
    clock.advance(lease * 3)  # no worker could beat

    store.run(calls.round_(tick))
    assert store.run(calls.reap()) == []
    clock.advance(lease * 0.3)  # its worker is back, and has other things to do first
    store.run(calls.round_(tick))
    assert store.run(calls.reap()) == []
    (beat,) = store.run(calls.heartbeat([held], lease, worker))

    assert beat.answer == "held"
    clock.advance(lease * 0.3)
    store.run(calls.round_(tick))
    assert store.run(calls.reap()) == []


@pytest.mark.parametrize("seconds", [2, 60])
def test_a_worker_that_does_not_come_back_in_that_time_is_reaped(store, clock, seconds):
    lease = timedelta(seconds=seconds)
    worker = worker_with(store, lease)
    store.run(calls.round_(SHORT_TICK))
    enqueue(store)
    held = claim_one(store, lease=lease, worker=worker)
    clock.advance(lease * 3)
    store.run(calls.round_(SHORT_TICK))

    clock.advance(lease * 0.3)
    store.run(calls.round_(SHORT_TICK))
    before = store.run(calls.reap())
    after = rounds_for(store, clock, max(lease, LEASE), TICK)

    assert before == []
    assert [late.token for late in after] == [held.token]


def test_a_jobs_own_lease_counts_before_its_workers(store, clock):
    worker = worker_with(store, timedelta(seconds=2))
    store.run(calls.round_(TICK))
    enqueue(store, lease_for=timedelta(minutes=10))
    claim_one(store, lease=timedelta(seconds=2), worker=worker)
    clock.advance(minutes=30)
    store.run(calls.round_(TICK))

    clock.advance(minutes=9)

    assert store.run(calls.reap()) == []


def test_a_gap_that_is_short_for_a_lease_does_not_put_off_its_reaping(store, clock):
    """A lease of two minutes has had its beats, or its worker is dead: eight seconds cost it none."""
    lease = timedelta(minutes=2)
    worker = worker_with(store, lease)
    store.run(calls.round_(TICK))
    enqueue(store)
    held = claim_one(store, lease=lease, worker=worker)
    rounds_for(store, clock, lease - timedelta(seconds=2), TICK * 3)
    clock.advance(seconds=8)
    store.run(calls.round_(TICK))

    reaped = rounds_for(store, clock, LEASE + TICK * 2, TICK)

    assert [late.token for late in reaped] == [held.token]


def test_a_second_gap_does_not_end_what_the_first_began(store, clock):
    """A short one follows a long one: leases that were hurt by the first still have their time."""
    lease = timedelta(minutes=1)
    worker = worker_with(store, lease)
    store.run(calls.round_(TICK))
    enqueue(store)
    claim_one(store, lease=lease, worker=worker)
    clock.advance(minutes=10)
    store.run(calls.round_(TICK))
    clock.advance(seconds=9)
    store.run(calls.round_(TICK))

    clock.advance(seconds=45)
    store.run(calls.round_(TICK * 20))

    assert store.run(calls.reap()) == []


@pytest.mark.parametrize("first", ["the start of the server", "a long gap"])
def test_short_gaps_do_not_postpone_without_end_what_a_long_one_spares(store, clock, db, first):
    """A login calls round again and again with a tiny tick: each call looks like a gap."""
    store.run(calls.round_(TICK))
    enqueue(store)
    held = claim_one(store)
    if first == "a long gap":
        clock.advance(days=2)  # and the server is old
    else:
        ((age,),) = db.execute("select faultline.now() - pg_postmaster_start_time()").fetchall()
        clock.advance(timedelta(minutes=1) - age)
    store.run(calls.round_(TICK))

    reaped = rounds_for(store, clock, LEASE * 3, timedelta(milliseconds=1), step=TICK)

    assert [late.token for late in reaped] == [held.token]


def test_time_in_which_no_worker_could_work_does_not_count_towards_a_deadline(store, clock, db):
    """An outage, or a clock that was set forward: either way the job had none of it."""
    store.run(calls.round_(TICK))
    enqueue(store, timeout=timedelta(minutes=10))
    lease = claim_one(store)
    store.run(calls.round_(TICK))
    ((before,),) = db.execute("select deadline_at - faultline.now() from faultline.active").fetchall()
    clock.advance(TICK)
    store.run(calls.round_(TICK))
    clock.advance(hours=1)

    store.run(calls.round_(TICK))

    ((after,),) = db.execute("select deadline_at - faultline.now() from faultline.active").fetchall()
    assert abs(after - before) < timedelta(seconds=30)
    store.run(calls.heartbeat([lease], LEASE))
    assert rounds_for(store, clock, LEASE * 0.9, TICK) == []
