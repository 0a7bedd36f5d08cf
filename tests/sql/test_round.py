"""Whose round it is, and when fire is held: an outage is not a crash."""

from datetime import timedelta

import pytest

from faultline.bounds import LEASE_MAX
from faultline.store import calls
from faultline.watchdog.chores import EARLY, LATE
from tests.support import SECOND, all_at_once, claim_one, enqueue

LEASE = timedelta(seconds=15)


@pytest.fixture
def old_server(clock, db):
    """The server has been up for longer than a lease, as most have."""
    clock.advance(hours=1)


def hold_until(db):
    return db.execute("select hold_until from faultline.rounds").fetchone()[0]


def seconds_held(db):
    return db.execute(
        "select case when isfinite(hold_until)"
        " then extract(epoch from hold_until - faultline.now())::float else 0 end"
        " from faultline.rounds"
    ).fetchone()[0]


def test_one_of_many_callers_at_once_has_the_round(store):
    wins = all_at_once(16, lambda _: store.run(calls.round_(SECOND)))

    assert sum(wins) == 1


def test_the_next_round_is_a_tick_later(store, clock):
    first = store.run(calls.round_(SECOND))
    too_soon = store.run(calls.round_(SECOND))
    clock.advance(seconds=1)

    assert (first, too_soon, store.run(calls.round_(SECOND))) == (True, False, True)


def test_a_round_of_another_watchdog_is_not_waited_for(store, db):
    with db.transaction():
        db.execute("select from faultline.rounds for update")

        assert store.run(calls.round_(SECOND)) is False


def test_ordinary_rounds_hold_no_fire(store, clock, db, old_server):
    for _ in range(5):
        store.run(calls.round_(SECOND))
        clock.advance(seconds=2)

    assert seconds_held(db) <= 0


def test_after_a_gap_nothing_is_reaped_for_one_lease(store, clock, db, old_server):
    """After an outage every lease looks expired though every worker is well."""
    store.run(calls.round_(SECOND))
    enqueue(store)
    lease = claim_one(store)
    clock.advance(seconds=60)

    store.run(calls.round_(SECOND))
    in_the_lease = store.run(calls.reap())
    clock.advance(LEASE + SECOND)
    after_it = store.run(calls.reap())

    assert in_the_lease == []
    assert [row.job_id for row in after_it] == [lease.job_id]


@pytest.mark.parametrize(
    ("gap", "tick", "held"),
    [(7, 1, False), (8, 1, True), (29, 10, False), (31, 10, True), (2, 0.25, False), (8, 0.25, True)],
)
def test_a_gap_is_half_a_lease_or_three_ticks_whichever_is_longer(
    store, clock, db, old_server, gap, tick, held
):
    store.run(calls.round_(timedelta(seconds=tick)))
    clock.advance(seconds=gap)

    store.run(calls.round_(timedelta(seconds=tick)))

    assert (seconds_held(db) > 0) is held


def test_a_short_default_lease_makes_a_short_hold(store, clock, db, old_server):
    store.run(calls.configure(default_lease=timedelta(seconds=4)))
    store.run(calls.round_(timedelta(seconds=0.5)))
    clock.advance(seconds=3)

    store.run(calls.round_(timedelta(seconds=0.5)))

    assert 3 < seconds_held(db) <= 4


def test_the_first_round_of_an_installation_holds_no_fire(store, db, old_server):
    store.run(calls.round_(SECOND))

    assert seconds_held(db) <= 0


def set_server_age(clock, db, seconds):
    """Put the clock so many seconds after the server's start."""
    age = db.execute(
        "select extract(epoch from faultline.now() - pg_postmaster_start_time())::float"
    ).fetchone()[0]
    clock.advance(seconds=seconds - age)


def test_after_the_server_started_nothing_is_reaped_for_one_lease(store, clock, db):
    set_server_age(clock, db, 5)

    store.run(calls.round_(SECOND))

    assert 9 < seconds_held(db) <= 10


def test_a_young_server_does_not_shorten_the_hold_after_a_gap(store, clock, db):
    """The gap is noticed 5 s after the start: one lease from there, not from the start."""
    set_server_age(clock, db, -60)
    store.run(calls.round_(SECOND))
    set_server_age(clock, db, 5)
    store.run(calls.round_(SECOND))
    noticed = hold_until(db)
    clock.advance(seconds=1)

    store.run(calls.round_(SECOND))

    assert hold_until(db) == noticed


def test_a_hold_is_over_after_one_lease_though_rounds_go_on(store, clock, db, old_server):
    store.run(calls.round_(SECOND))
    clock.advance(minutes=1)
    store.run(calls.round_(SECOND))
    noticed = hold_until(db)

    for _ in range(10):
        clock.advance(seconds=2)
        store.run(calls.round_(SECOND))

    assert hold_until(db) == noticed
    assert seconds_held(db) < 0


def test_rounds_go_on_when_the_clock_was_set_back(store, clock):
    """A promoted standby may be an hour behind; its rounds may not wait for an hour."""
    store.run(calls.round_(SECOND))
    clock.advance(hours=-1)

    assert store.run(calls.round_(SECOND)) is True


def test_a_clock_set_back_does_not_make_a_hold_longer_than_a_lease(store, clock, db, old_server):
    store.run(calls.round_(SECOND))
    clock.advance(minutes=1)
    store.run(calls.round_(SECOND))
    clock.advance(minutes=-30)

    store.run(calls.round_(SECOND))

    assert seconds_held(db) <= 15


def test_a_clock_a_little_behind_does_not_make_a_second_round_in_a_tick(store, clock):
    store.run(calls.round_(SECOND))
    clock.advance(seconds=-0.5)

    assert store.run(calls.round_(SECOND)) is False


@pytest.mark.parametrize("tick", ["-1 day", "0", "2 days", None])
def test_a_tick_has_bounds(store, db, tick):
    """A negative one won every round, and each moved the deadlines of all that runs."""
    enqueue(store, timeout=SECOND * 10)
    claim_one(store)
    store.run(calls.round_(SECOND))
    deadline = db.execute("select deadline_at from faultline.active").fetchall()

    with pytest.raises(Exception, match="a tick is above zero and at most a day"):
        db.execute("select mine from faultline.round(%s::interval)", [tick])

    assert db.execute("select deadline_at from faultline.active").fetchall() == deadline


def test_a_round_is_neglected_when_nothing_is_reaped(store, clock, old_server):
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    clock.advance(seconds=29)
    store.run(calls.round_(SECOND))
    before = store.run(calls.make_round(SECOND)).neglected
    clock.advance(seconds=2)
    store.run(calls.round_(SECOND))

    assert (before, store.run(calls.make_round(SECOND)).neglected) == (False, True)

    store.run(calls.reap())
    assert store.run(calls.make_round(SECOND)).neglected is False


def test_a_round_is_neglected_when_its_row_is_locked(store, clock, db, old_server):
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    clock.advance(seconds=31)

    with db.transaction():
        db.execute("select from faultline.rounds for update")
        made = store.run(calls.make_round(SECOND))

    assert (made.mine, made.neglected) == (False, True)


def test_reaping_while_the_row_of_the_rounds_is_locked(store, clock, db, old_server):
    """The walk also passes the lanes' tops, once no round has noted its end for two minutes."""
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    enqueue(store)
    lease = claim_one(store)
    db.execute("update faultline.lanes set top = 0")
    clock.advance(minutes=3)

    with db.transaction():
        db.execute("select from faultline.rounds for update")
        reaped = store.run(calls.reap())

    assert [late.token for late in reaped] == [lease.token]


def test_rounds_with_a_short_tick_do_not_move_deadlines(store, clock, db, old_server):
    """A login with a tiny tick makes two a second: no worker was kept from working."""
    tiny = timedelta(milliseconds=1)
    store.run(calls.round_(tiny))
    enqueue(store, timeout=SECOND * 10)
    claim_one(store)
    deadline = db.execute("select deadline_at from faultline.active").fetchall()

    for _ in range(4):
        clock.advance(seconds=0.5)
        assert store.run(calls.round_(tiny))

    assert db.execute("select deadline_at from faultline.active").fetchall() == deadline


@pytest.mark.parametrize("tick", [timedelta(milliseconds=1) * EARLY, LEASE_MAX * LATE])
def test_what_a_configured_tick_makes_a_watchdog_ask_with_lies_inside_the_bounds(store, tick):
    """A tick lasts from a millisecond to less than the longest lease; the one on duty asks a little early."""
    store.run(calls.round_(tick))
