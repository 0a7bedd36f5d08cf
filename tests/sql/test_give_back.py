"""running -> queued with the attempt given back: snooze and release."""

from datetime import timedelta

import pytest

from faultline.errors import LeaseLost, OutOfBounds
from faultline.store import calls
from tests.support import claim_many, claim_one, enqueue, outcomes, row_counts, state_of


def test_a_snoozed_job_comes_back_after_its_delay_with_its_attempt(store, clock):
    job_id = enqueue(store)

    store.run(calls.snooze(claim_one(store), timedelta(minutes=1), "not yet"))

    job = store.run(calls.get(job_id))
    assert (job.state, job.attempt, job.error) == ("queued", 0, "not yet")
    store.run(calls.promote())
    assert claim_many(store) == []
    clock.advance(minutes=1)
    store.run(calls.promote())
    assert claim_one(store).job_id == job_id


def test_a_job_with_one_attempt_may_be_snoozed_without_end(store, clock):
    job_id = enqueue(store, max_attempts=1)

    for _ in range(3):
        store.run(calls.snooze(claim_one(store), timedelta(seconds=1)))
        clock.advance(seconds=1)
        store.run(calls.promote())
    store.run(calls.complete(claim_one(store), "null"))

    assert outcomes(store, job_id) == ["snoozed", "snoozed", "snoozed", "succeeded"]


def test_a_released_job_is_free_at_once_with_its_attempt(store):
    job_id = enqueue(store, max_attempts=1)

    store.run(calls.release(claim_one(store), "the worker stops"))

    job = store.run(calls.get(job_id))
    assert (job.state, job.attempt, job.token) == ("queued", 0, 1)
    assert claim_one(store).job_id == job_id


def test_a_released_job_goes_to_the_end_of_its_lane(store):
    """Whatever comes back takes a new place, so a lane's floor only rises."""
    first, second = enqueue(store), enqueue(store)

    store.run(calls.release(claim_one(store)))

    assert [claim_one(store).job_id for _ in range(2)] == [second, first]


def test_a_job_released_with_a_delay_waits_for_it(store, clock):
    job_id = enqueue(store)

    store.run(calls.release(claim_one(store), delay=timedelta(seconds=30)))

    assert claim_many(store) == []
    clock.advance(seconds=30)
    store.run(calls.promote())
    assert claim_one(store).job_id == job_id


def test_giving_back_keeps_crashes_and_the_last_error(store, clock):
    job_id = enqueue(store)
    claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())

    store.run(calls.release(claim_one(store)))

    job = store.run(calls.get(job_id))
    assert (job.attempt, job.crashes, job.error) == (1, 1, "lease expired")


def snooze_unknown(store, job_id):
    """Claim the job and say that its task is unknown; then it is due again. Returns the call's answer."""
    lease = claim_one(store)
    assert lease.job_id == job_id
    return store.run(calls.snooze_unknown(lease, timedelta(0)))


def test_a_job_whose_task_is_unknown_for_a_day_is_dead(store, clock):
    job_id = enqueue(store, task="missing")

    answers = [snooze_unknown(store, job_id)]
    for hours in (23, 2):
        clock.advance(hours=hours)
        answers.append(snooze_unknown(store, job_id))

    assert answers == ["queued", "queued", "dead"]
    assert outcomes(store, job_id) == ["snoozed", "snoozed", "dead"]
    assert store.run(calls.get(job_id)).error == "no worker knew the task missing for a day"


def test_the_day_of_an_unknown_task_outlives_a_wait(store, clock):
    job_id = enqueue(store, task="missing")
    store.run(calls.snooze_unknown(claim_one(store), timedelta(seconds=15)))
    clock.advance(hours=25)
    store.run(calls.promote())

    assert snooze_unknown(store, job_id) == "dead"


@pytest.mark.parametrize(
    "end",
    [
        lambda lease: calls.snooze(lease, timedelta(0)),
        lambda lease: calls.release(lease),
        lambda lease: calls.fail(lease, "it ran, and failed", timedelta(0)),
    ],
    ids=["snooze", "release", "fail"],
)
def test_a_worker_that_knows_the_task_begins_the_day_anew(store, clock, end):
    job_id = enqueue(store, task="known_by_some")
    snooze_unknown(store, job_id)
    clock.advance(hours=25)
    store.run(end(claim_one(store)))
    store.run(calls.promote())

    assert snooze_unknown(store, job_id) == "queued"
    assert state_of(store, job_id) == "queued"


def test_a_replay_begins_the_day_of_an_unknown_task_anew(store, clock):
    job_id = enqueue(store, task="missing")
    snooze_unknown(store, job_id)
    clock.advance(hours=25)
    assert snooze_unknown(store, job_id) == "dead"

    store.run(calls.replay(job_id))

    assert snooze_unknown(store, job_id) == "queued"


def test_both_are_entries_of_the_ledger(store, clock):
    job_id = enqueue(store)
    store.run(calls.snooze(claim_one(store), timedelta(seconds=1), "not yet"))
    clock.advance(seconds=1)
    store.run(calls.promote())
    store.run(calls.release(claim_one(store), "stopping"))

    history = store.run(calls.history(job_id))

    assert [(entry.outcome, entry.error) for entry in history] == [
        ("snoozed", "not yet"),
        ("released", "stopping"),
    ]


GIVEN_BACK = {
    "snooze": lambda lease: calls.snooze(lease, timedelta(1)),
    "snooze_unknown": lambda lease: calls.snooze_unknown(lease, timedelta(1)),
    "release": calls.release,
}


@pytest.mark.parametrize("verb", GIVEN_BACK)
def test_a_lost_lease_can_give_nothing_back(store, database, verb):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.release(lease))
    newer = claim_one(store)
    before = row_counts(database)

    with pytest.raises(LeaseLost):
        store.run(GIVEN_BACK[verb](lease))

    assert row_counts(database) == before
    assert store.run(calls.get(newer.job_id)).attempt == 1
    assert state_of(store, newer.job_id) == "running"


@pytest.mark.parametrize("delay", [timedelta(seconds=-1), timedelta(days=3601)])
@pytest.mark.parametrize("verb", [calls.snooze, lambda lease, delay: calls.release(lease, delay=delay)])
def test_a_delay_outside_its_bounds_is_refused_and_the_job_stays_ours(store, verb, delay):
    enqueue(store)
    lease = claim_one(store)

    with pytest.raises(OutOfBounds, match="a delay is from 0 to 10 years"):
        store.run(verb(lease, delay))

    assert state_of(store, lease.job_id) == "running"
