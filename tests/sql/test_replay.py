"""dead -> queued, later -> queued now: replay, replay_many and retry_now."""

from datetime import timedelta

import pytest

from faultline.errors import JobNotFound, WrongState
from faultline.store import calls
from tests.support import NOW, all_at_once, claim_many, claim_one, enqueue, outcomes, row_counts, state_of

DAY = timedelta(days=1)


def dead_job(store, **options):
    job_id = enqueue(store, **{"max_attempts": 1, **options})
    store.run(calls.fail(claim_one(store, queues=(options.get("queue", "default"),)), "boom", NOW))
    return job_id


def test_a_replayed_job_starts_from_its_first_attempt(store):
    job_id = dead_job(store, args='{"n": 1}')

    queue = store.run(calls.replay(job_id))

    job = store.run(calls.get(job_id))
    assert (queue, job.state, job.attempt, job.crashes, job.args) == ("default", "queued", 0, 0, {"n": 1})
    store.run(calls.complete(claim_one(store), "null"))
    assert outcomes(store, job_id) == ["dead", "succeeded"]


def test_a_replayed_job_may_die_again(store):
    job_id = dead_job(store)
    store.run(calls.replay(job_id))

    store.run(calls.fail(claim_one(store), "boom", NOW))

    assert outcomes(store, job_id) == ["dead", "dead"]
    assert state_of(store, job_id) == "dead"


@pytest.mark.parametrize("state", ["queued", "running", "succeeded", "cancelled"])
def test_only_a_dead_job_can_be_replayed(store, database, state):
    job_id = enqueue(store)
    lease = None if state == "queued" else claim_one(store)
    if state == "succeeded":
        store.run(calls.complete(lease, "null"))
    if state == "cancelled":
        store.run(calls.cancel(job_id))
    before = row_counts(database)

    with pytest.raises(WrongState, match=f"is {state}"):
        store.run(calls.replay(job_id))

    assert row_counts(database) == before


def test_an_unknown_job_cannot_be_replayed(store):
    with pytest.raises(JobNotFound):
        store.run(calls.replay(404))


def test_replaying_twice_at_once_replays_once(store):
    job_id = dead_job(store)

    def replay(_):
        try:
            return store.run(calls.replay(job_id))
        except WrongState:
            return None

    assert sorted(all_at_once(8, replay), key=str) == [None] * 7 + ["default"]
    assert len(claim_many(store)) == 1


def test_many_are_replayed_by_filter_each_once(store):
    ids = [dead_job(store) for _ in range(5)]

    first = store.run(calls.replay_many())
    second = store.run(calls.replay_many())

    assert sorted(first) == ids
    assert second == []
    assert [lease.job_id for lease in claim_many(store)] == ids


def test_two_bulk_replays_at_once_take_each_job_once(store):
    ids = [dead_job(store) for _ in range(30)]

    replayed = all_at_once(4, lambda _: store.run(calls.replay_many(most=20)))

    assert sorted(job_id for batch in replayed for job_id in batch) == ids


def test_the_filters_of_a_bulk_replay(store, clock):
    by_queue = dead_job(store, queue="mail")
    by_task = dead_job(store, task="charge")
    clock.advance(hours=1)
    since = clock.now()
    by_moment = dead_job(store)

    assert store.run(calls.replay_many(queue="mail")) == [by_queue]
    assert store.run(calls.replay_many(task="charge")) == [by_task]
    assert store.run(calls.replay_many(died_after=since)) == [by_moment]


def test_a_bulk_replay_takes_no_more_than_asked(store):
    for _ in range(5):
        dead_job(store)

    assert len(store.run(calls.replay_many(most=2))) == 2
    assert len(store.run(calls.list_jobs(state="dead"))) == 3


def test_a_replayed_job_has_its_key_again(store, clock):
    job_id = dead_job(store, key="order-7", key_for=DAY)
    store.run(calls.replay(job_id))
    clock.advance(days=400)
    store.run(calls.prune())

    assert enqueue(store, key="order-7", max_attempts=1) == job_id


def test_a_job_replayed_after_its_keys_window_has_its_key_again_where_it_is_free(store, clock):
    job_id = dead_job(store, key="order-7", key_for=DAY)
    clock.advance(days=2)
    store.run(calls.prune())

    store.run(calls.replay(job_id))

    assert store.run(calls.get(job_id)).key == "order-7"
    assert enqueue(store, key="order-7") == job_id


def test_a_job_replayed_after_another_took_its_key_runs_without_one(store, clock):
    first = dead_job(store, key="order-7", key_for=DAY)
    clock.advance(days=2)
    second = enqueue(store, key="order-7")

    store.run(calls.replay(first))

    assert store.run(calls.get(first)).key is None
    assert enqueue(store, key="order-7") == second
    assert [lease.job_id for lease in claim_many(store)] == [first, second]


def test_the_end_of_a_replayed_job_leaves_the_key_of_another_alone(store, clock):
    first = dead_job(store, key="order-7", key_for=NOW)
    clock.advance(days=2)
    second = enqueue(store, key="order-7", key_for=NOW, delay=timedelta(hours=1))
    store.run(calls.replay(first))

    store.run(calls.complete(claim_one(store), "null"))

    clock.advance(seconds=1)
    assert enqueue(store, key="order-7") == second


def test_a_retry_can_be_had_at_once(store):
    job_id = enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", timedelta(hours=1)))

    queue = store.run(calls.retry_now(job_id))

    assert queue == "default"
    assert claim_one(store).job_id == job_id
    assert store.run(calls.get(job_id)).attempt == 2


def test_a_scheduled_job_can_be_had_at_once(store):
    job_id = enqueue(store, delay=timedelta(days=1), queue="mail")

    queue = store.run(calls.retry_now(job_id))

    assert queue == "mail"
    assert claim_one(store, queues=("mail",)).job_id == job_id


def test_retrying_a_job_that_is_already_due_changes_nothing(store, database):
    job_id = enqueue(store)
    before = row_counts(database)

    queue = store.run(calls.retry_now(job_id))

    assert queue == "default"
    assert row_counts(database) == before


@pytest.mark.parametrize("state", ["running", "succeeded", "dead"])
def test_what_does_not_wait_cannot_be_retried_now(store, state):
    job_id = enqueue(store)
    lease = claim_one(store)
    if state == "succeeded":
        store.run(calls.complete(lease, "null"))
    if state == "dead":
        store.run(calls.bury(lease, "no use"))

    with pytest.raises(WrongState, match=f"is {state}"):
        store.run(calls.retry_now(job_id))

    assert state_of(store, job_id) == state


def test_an_unknown_job_cannot_be_retried(store):
    with pytest.raises(JobNotFound):
        store.run(calls.retry_now(404))
