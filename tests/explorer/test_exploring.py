"""The explorer plays every order once, sees who waits, and holds the invariants against each end."""

from proof.explorer.exploring import explore, orders
from proof.explorer.scenario import Scenario
from proof.explorer.scenarios import SCENARIOS
from proof.explorer.scenarios.plays import does, does_together, works_at_once
from proof.explorer.scenarios.verbs import complete_at_once, enqueued, in_hand, tick
from proof.explorer.stage import altered

TWO_CLOCKS = Scenario("two clocks", "", {"A": does(tick(), tick()), "B": does(tick(), tick())})

ONE_LEASE_TWICE = Scenario(
    "one lease twice",
    "two threads complete the same lease",
    {"A": does_together(complete_at_once("A")), "B": works_at_once("A")},
    enqueued() + in_hand("A"),
)


def test_every_order_is_played_once(stage):
    played = [tuple(order.chosen) for order in orders(stage, TWO_CLOCKS)]

    assert len(played) == len(set(played)) == 6  # 4! / (2! * 2!)


def test_orders_can_be_shared_out_by_how_they_begin(stage):
    whole = [order.chosen for order in orders(stage, TWO_CLOCKS)]

    parts = [order.chosen for first in "AB" for order in orders(stage, TWO_CLOCKS, first)]

    assert parts == whole


def test_who_waits_for_a_lock_is_seen_waiting_and_goes_on_when_it_may(stage):
    played = list(orders(stage, ONE_LEASE_TWICE))

    waited = [order for order in played if order.waits]
    assert [order.chosen for order in waited] == [["A", "B", "A"]]
    assert all(order.refusals == 1 for order in played)


def test_a_scenario_with_stops_inside_a_function_is_explored_whole_and_holds(staged, stage):
    scenario = SCENARIOS["two enqueues of one key"]

    with altered(staged, (), scenario.stops):
        *_, tally = explore(stage, scenario)

    assert tally.violations == 0
    assert tally.waits > 0
    assert 1 < len(tally.endings) < tally.orders


def test_the_shipped_functions_are_back_when_a_scenario_is_over(staged, db):
    def sources():
        return db.execute(
            "select proname, prosrc from pg_proc where pronamespace = 'faultline'::regnamespace"
            " order by proname, oid"
        ).fetchall()

    before = sources()
    with altered(staged, (), SCENARIOS["two enqueues of one key"].stops):
        assert sources() != before

    assert sources() == before
