"""Who leads the slow chores: a lease row, not a session's lock."""

from datetime import timedelta

from faultline.store import calls
from tests.support import all_at_once

TEN = timedelta(seconds=10)


def term(db):
    return db.execute("select term from faultline.rounds").fetchone()[0]


def test_one_of_many_leads(store):
    leads = all_at_once(12, lambda n: store.run(calls.lead(n)))

    assert sum(leads) == 1


def test_the_leader_goes_on_leading_in_the_same_term(store, clock, db):
    terms = []
    for _ in range(5):
        assert store.run(calls.lead(1))
        terms.append(term(db))
        clock.advance(seconds=4)

    assert set(terms) == {1}


def test_no_other_leads_before_the_leaders_time_is_over(store, clock):
    store.run(calls.lead(1, TEN))
    clock.advance(seconds=9)

    assert store.run(calls.lead(2, TEN)) is False


def test_another_takes_over_after_it_in_a_new_term(store, clock, db):
    store.run(calls.lead(1, TEN))
    clock.advance(seconds=11)

    took_over = store.run(calls.lead(2, TEN))

    assert took_over is True
    assert term(db) == 2
    assert store.run(calls.lead(1, TEN)) is False


def test_a_late_leader_without_a_successor_leads_on(store, clock, db):
    store.run(calls.lead(1, TEN))
    clock.advance(minutes=5)

    assert store.run(calls.lead(1, TEN)) is True
    assert term(db) == 1


def test_a_locked_row_is_not_waited_for(store, db):
    with db.transaction():
        db.execute("select from faultline.rounds for update")

        assert store.run(calls.lead(1)) is False


def test_leading_and_rounds_do_not_disturb_each_other(store, clock):
    store.run(calls.lead(1))
    first = store.run(calls.round_(timedelta(seconds=1)))
    clock.advance(seconds=2)

    assert first is True
    assert store.run(calls.round_(timedelta(seconds=1))) is True
    assert store.run(calls.lead(2)) is False
