"""queued for later -> queued now: promote and next_due."""

from datetime import timedelta

import pytest

from faultline.store import calls
from tests.support import all_at_once, claim_many, claim_one, enqueue, new_job

HOUR = timedelta(hours=1)


def test_what_is_due_moves_and_its_queues_are_told(store, clock):
    store.run(calls.enqueue_many([new_job(delay=HOUR) for _ in range(3)]))
    enqueue(store, queue="mail", delay=HOUR)
    enqueue(store, queue="far", delay=2 * HOUR)
    clock.advance(HOUR)

    moved = store.run(calls.promote())

    assert sorted(moved) == [("default", 3), ("mail", 1)]
    assert len(claim_many(store, queues=("default", "mail", "far"))) == 4


def test_nothing_due_moves_nothing(store):
    enqueue(store, delay=HOUR)

    assert store.run(calls.promote()) == []


def test_a_promoted_job_goes_to_the_end_of_its_lane(store, clock):
    early = enqueue(store, delay=HOUR)
    clock.advance(HOUR)
    waiting = enqueue(store)

    store.run(calls.promote())

    assert [claim_one(store).job_id for _ in range(2)] == [waiting, early]


def test_the_earliest_go_first_when_not_all_can(store, clock):
    late = enqueue(store, delay=2 * HOUR)
    early = enqueue(store, delay=HOUR)
    clock.advance(3 * HOUR)

    store.run(calls.promote(most=1))

    assert [lease.job_id for lease in claim_many(store)] == [early]
    store.run(calls.promote(most=1))
    assert [lease.job_id for lease in claim_many(store)] == [late]


def test_many_promoters_at_once_move_each_job_once(store, clock):
    ids = store.run(calls.enqueue_many([new_job(delay=HOUR) for _ in range(60)]))
    clock.advance(HOUR)

    moved = all_at_once(8, lambda _: store.run(calls.promote(most=20)))

    assert sum(count for batch in moved for _, count in batch) == 60
    assert [lease.job_id for lease in claim_many(store)] == ids


def test_a_promoted_job_keeps_all_it_had(store, clock):
    job_id = enqueue(store, args='{"n": 1}', key="k", max_attempts=3, priority=7)
    store.run(calls.fail(claim_one(store), "boom", HOUR))
    before = store.run(calls.get(job_id))
    clock.advance(HOUR)

    store.run(calls.promote())

    after = store.run(calls.get(job_id))
    kept = ("token", "attempt", "max_attempts", "crashes", "args", "key", "error", "priority", "created_at")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]


def test_the_next_due_moment_is_told_in_seconds(store, clock):
    enqueue(store, delay=HOUR)
    enqueue(store, delay=timedelta(minutes=2))

    assert store.run(calls.next_due()) == pytest.approx(120, abs=3)

    clock.advance(minutes=3)

    assert store.run(calls.next_due()) == pytest.approx(-60, abs=3)


def test_when_nothing_waits_nothing_is_due(store):
    enqueue(store)

    assert store.run(calls.next_due()) is None
