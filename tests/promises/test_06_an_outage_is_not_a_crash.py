"""Rule 6: after an outage all leases look expired though all workers are well; nobody reaps for a lease."""

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


def test_after_a_long_silence_nobody_reaps_for_one_lease(store, clock):
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


def test_nobody_waits_for_a_round_that_somebody_else_is_doing(store, clock, session):
    settle_in(store)
    clock.advance(TICK)
    first = session()
    first.begin()
    assert first.run(calls.round_(TICK))

    assert session().run_at_once(calls.round_(TICK)) is False


def test_a_round_comes_once_a_tick(store, clock):
    settle_in(store)
    clock.advance(TICK * 0.9)
    assert store.run(calls.round_(TICK)) is False
    clock.advance(TICK * 0.2)
    assert store.run(calls.round_(TICK)) is True
