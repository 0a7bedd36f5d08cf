"""How much work a queue has for its workers: what a scaler asks for."""

import json
from datetime import timedelta

import pytest

from faultline.store import calls
from tests.support import claim_many, claim_one, enqueue, new_job


def backlog(store, queue="default", **bound):
    return store.run(calls.backlog(queue, **bound))


def test_due_and_running_count_until_they_are_settled(store):
    for _ in range(3):
        enqueue(store)
    assert backlog(store) == 3

    lease = claim_one(store)
    assert backlog(store) == 3

    store.run(calls.complete(lease, None))
    assert backlog(store) == 2


def test_a_waiting_job_counts_from_its_moment_on_though_it_is_not_promoted(store, clock):
    """Without a worker there is no watchdog either: the scaler has to see the job by itself."""
    enqueue(store, delay=timedelta(hours=1))
    assert backlog(store) == 0

    clock.advance(hours=2)

    assert backlog(store) == 1


def test_of_a_paused_queue_only_what_runs_counts(store, clock):
    enqueue(store)
    enqueue(store)
    enqueue(store, delay=timedelta(seconds=1))
    claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.pause("default"))

    assert backlog(store) == 1


def test_queues_are_counted_apart_or_all_together(store):
    enqueue(store, queue="mail")
    enqueue(store, queue="mail", priority=3)
    enqueue(store, queue="billing")

    assert [backlog(store, name) for name in ("mail", "billing", "empty", None)] == [2, 1, 0, 3]


def test_it_counts_no_further_than_its_bound(store):
    store.run(calls.enqueue_many([new_job()] * 50))

    assert backlog(store, most=20) == 20
    assert backlog(store, most=50) == 50
    assert backlog(store) == 50


@pytest.mark.parametrize("paused", [False, True])
def test_its_cost_does_not_grow_with_the_line(store, db, paused):
    """Counted in pages, not in seconds. Of a paused queue what runs is looked for as far as reap looks."""
    many = [new_job()] * 1000
    for _ in range(8):
        store.run(calls.enqueue_many(many))
    claim_many(store, 5)
    if paused:
        store.run(calls.pause("default"))
    few = pages(db)

    for _ in range(8):
        store.run(calls.enqueue_many(many))

    assert pages(db) <= few + 10


def pages(db):
    """How many pages one count up to a hundred touches, its plan and catalog already known."""
    ask = "explain (analyze, buffers, format json) select faultline.backlog('default', 100)"
    for _ in range(3):
        ((told,),) = db.execute(ask).fetchall()
    (plan,) = told if isinstance(told, list) else json.loads(told)
    return plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
