"""How many due jobs a queue may hold, and how its jobs age."""

from datetime import timedelta

import pytest

from faultline.errors import OutOfBounds, QueueFull
from faultline.store import calls
from tests.support import NOW, claim_many, claim_one, enqueue, new_job, row_counts

MINUTE = timedelta(minutes=1)


@pytest.fixture
def full(store):
    """Two jobs in a queue that may hold two."""
    enqueue(store)
    enqueue(store, priority=3)
    store.run(calls.configure_queue("default", max_depth=2))


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    "call",
    [
        lambda new: calls.enqueue(new()),
        lambda new: calls.enqueue_one(new(key="k")),
        lambda new: calls.enqueue_many([new(), new()]),
        lambda new: calls.enqueue_many([new(delay=MINUTE)]),
        lambda new: calls.enqueue_one(new(key="k", key_rule="while_queued")),
    ],
    ids=["one", "keyed", "many", "later", "unique"],
)
def test_a_full_queue_refuses_what_is_new_by_name(store, database, call):
    before = row_counts(database)

    with pytest.raises(QueueFull, match=r"queue default is full: it holds 2 due jobs or more.*--max-depth"):
        store.run(call(new_job))

    assert row_counts(database) == before
    assert [row.state for row in store.run(calls.enqueue_each([new_job()]))] == ["new_lane"]


def test_what_is_there_already_is_found_in_a_full_queue(store):
    first = enqueue(store, key="k")
    replaced = enqueue(store, key="r", key_rule="replace")
    store.run(calls.configure_queue("default", max_depth=1))

    assert enqueue(store, key="k") == first
    assert enqueue(store, key="r", key_rule="replace", args='{"n":2}') == replaced


def test_retries_promotions_and_replays_are_never_refused(store, clock):
    later = enqueue(store, delay=MINUTE)
    dead, failed = enqueue(store), enqueue(store)
    leases = {lease.job_id: lease for lease in claim_many(store)}
    enqueue(store)
    store.run(calls.configure_queue("default", max_depth=1))

    store.run(calls.bury(leases[dead], "no"))
    store.run(calls.replay(dead))
    store.run(calls.fail(leases[failed], "boom", NOW))
    clock.advance(MINUTE)
    store.run(calls.promote())

    assert {later, dead, failed} < {lease.job_id for lease in claim_many(store)}


def test_the_mark_follows_the_rounds_and_goes_with_the_bound(store):
    enqueue(store)
    enqueue(store, priority=3)
    store.run(calls.configure_queue("default", max_depth=3))
    soft = [enqueue(store), enqueue(store)]  # more may come until the next round
    assert store.run(calls.mark_full()) == 2
    with pytest.raises(QueueFull):
        enqueue(store)
    (queue,) = store.run(calls.list_queues("default"))
    assert (queue.max_depth, queue.full, queue.due) == (3, True, 4)

    claim_many(store, 2)
    store.run(calls.mark_full())
    enqueue(store)
    store.run(calls.configure_queue("default", max_depth=1))
    with pytest.raises(QueueFull):
        enqueue(store)
    store.run(calls.configure_queue("default", max_depth=0))

    assert len(soft) == 2
    enqueue(store)
    assert store.run(calls.list_queues("default"))[0].max_depth is None


@pytest.mark.parametrize(
    "bounds", [{"max_depth": -1}, {"max_depth": 1_000_001}, {"age_after": timedelta(milliseconds=5)},
               {"age_after": timedelta(days=400)}, {"age_after": timedelta(seconds=-5)}],
)  # fmt: skip
def test_a_bound_that_cannot_be_is_refused(store, database, bounds):
    before = row_counts(database)

    with pytest.raises(OutOfBounds):
        store.run(calls.configure_queue("default", **bounds))

    assert row_counts(database) == before


def claimed_first(store):
    (lease,) = claim_many(store, 1)
    return lease.job_id


def test_an_old_job_moves_ahead_by_a_priority_for_each_age(store, clock):
    store.run(calls.configure_queue("default", age_after=MINUTE))
    old = enqueue(store, priority=2)
    clock.advance(MINUTE * 3)
    enqueue(store, priority=0)
    younger = enqueue(store, priority=2)
    assert claimed_first(store) == old
    assert claimed_first(store) != younger

    assert claimed_first(store) == younger


def test_until_it_is_old_enough_the_priority_decides_and_without_ageing_always(store, clock):
    old = enqueue(store, priority=2)
    clock.advance(MINUTE * 30)
    first, second = enqueue(store, priority=0), enqueue(store, priority=0)

    assert claimed_first(store) == first
    store.run(calls.configure_queue("default", age_after=MINUTE * 16))
    assert claimed_first(store) == second
    assert claimed_first(store) == old


def test_a_new_lane_ages_as_its_queue_does(store, clock):
    store.run(calls.configure_queue("new", age_after=MINUTE))
    old = enqueue(store, queue="new", priority=5)
    clock.advance(MINUTE * 10)
    enqueue(store, queue="new")

    assert claim_one(store, queues=("new",)).job_id == old
