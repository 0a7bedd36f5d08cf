"""running -> queued or dead, many at once: each with its own error and its own delay."""

from datetime import timedelta

from faultline.store import calls
from tests.support import claim_many, claim_one, enqueue, new_job, outcomes, state_of

SOON, LATER = timedelta(seconds=5), timedelta(hours=1)


def test_each_keeps_its_own_error_and_waits_its_own_delay(store, clock):
    first, second = store.run(calls.enqueue_many([new_job(), new_job()]))
    leases = claim_many(store)

    # In another order than the ids: what belongs together is told by the job, not by its place.
    assert store.run(calls.fail_many(leases[::-1], ["late", "soon"], [LATER, SOON])) == []

    infos = {job_id: store.run(calls.get(job_id)) for job_id in (first, second)}
    assert [infos[first].error, infos[second].error] == ["soon", "late"]
    assert infos[second].run_at - infos[first].run_at == LATER - SOON
    assert outcomes(store, first) == outcomes(store, second) == ["failed"]


def test_who_has_no_attempt_left_dies_beside_one_that_is_tried_again(store):
    doomed = enqueue(store, max_attempts=1)
    other = enqueue(store, max_attempts=2)

    store.run(calls.fail_many(claim_many(store), ["boom", "boom"], [SOON, SOON]))

    assert [state_of(store, doomed), state_of(store, other)] == ["dead", "queued"]
    assert outcomes(store, doomed) == ["dead"]


def test_a_delay_that_is_missing_is_none_at_all(store, clock):
    job = enqueue(store)
    lease = claim_one(store)

    store.run(calls.fail_many([lease], ["boom"], [timedelta(0)]))
    store.run(calls.promote())

    assert state_of(store, job) == "queued"


def test_a_batch_of_none_does_nothing(store):
    assert store.run(calls.fail_many([], [], [])) == []
