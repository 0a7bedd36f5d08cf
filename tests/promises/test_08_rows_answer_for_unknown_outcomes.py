"""Rule 8: when the reply to a settling was lost, rows say what became of it; no code guesses."""

from uuid import uuid4

import pytest

from faultline.store import calls
from tests.promises.verbs import OUTCOMES, SETTLING, reaped_lease, retaken
from tests.support import claim_many, claim_one, enqueue, new_job, outcomes


@pytest.mark.parametrize("verb", SETTLING)
def test_the_answer_waits_for_a_backend_that_is_still_committing(store, session, verb):
    """A plain look would say `running`, and be overtaken by the commit it did not wait for."""
    enqueue(store)
    lease = claim_one(store)
    worker, asker = session(), session()
    worker.begin()
    worker.run(SETTLING[verb](lease))

    answer = asker.start_waiting(calls.outcome(lease), behind=worker)
    worker.commit()

    assert answer.result(60) == OUTCOMES[verb]


def test_what_was_rolled_back_is_still_running(store, session):
    enqueue(store)
    lease = claim_one(store)
    worker, asker = session(), session()
    worker.begin()
    worker.run(calls.complete(lease, "null"))

    answer = asker.start_waiting(calls.outcome(lease), behind=worker)
    worker.rollback()

    assert answer.result(60) == "running"
    store.run(calls.complete(lease, "null"))
    assert outcomes(store, lease.job_id) == ["succeeded"]


def test_running_stays_true_while_the_asker_keeps_its_transaction(store, session):
    """Answered under the lock: the settling that was thought lost cannot slip in behind the answer."""
    enqueue(store)
    lease = claim_one(store)
    asker, late = session(), session()
    asker.begin()
    assert asker.run(calls.outcome(lease)) == "running"

    settling = late.start_waiting(calls.complete(lease, "null"), behind=asker)
    asker.commit()

    assert settling.result(60) is None


@pytest.mark.parametrize("verb", SETTLING)
def test_every_end_of_a_lease_is_told_by_its_name(store, verb):
    enqueue(store)
    lease = claim_one(store)
    store.run(SETTLING[verb](lease))

    assert store.run(calls.outcome(lease)) == OUTCOMES[verb]


def test_a_lease_that_was_taken_back_is_told_as_expired(store, clock):
    assert store.run(calls.outcome(reaped_lease(store, clock))) == "expired"


def test_the_old_lease_is_told_apart_from_the_new_one(store, clock):
    asleep, awake = retaken(store, clock)
    store.run(calls.complete(awake, "null"))

    assert store.run(calls.outcome(asleep)) == "expired"
    assert store.run(calls.outcome(awake)) == "succeeded"


def test_a_cancelled_job_tells_its_worker_cancelled(store):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.cancel(lease.job_id))

    assert store.run(calls.outcome(lease)) == "cancelled"


def test_a_queue_that_keeps_nothing_answers_gone(store):
    """No row can tell a success there from a job that never was: the client raises OutcomeUnknown."""
    store.run(calls.set_retention("default", "nothing"))
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.complete(lease, "null"))

    assert store.run(calls.outcome(lease)) == "gone"


@pytest.mark.parametrize("verb", [verb for verb in SETTLING if verb != "complete"])
def test_a_queue_that_keeps_nothing_drops_successes_only(store, verb):
    store.run(calls.set_retention("default", "nothing"))
    enqueue(store)
    lease = claim_one(store)
    store.run(SETTLING[verb](lease))

    assert store.run(calls.outcome(lease)) == OUTCOMES[verb]


def test_the_claim_of_another_is_told_nothing(store):
    enqueue(store)
    lease = claim_one(store)
    assert store.run(calls.outcome(lease._replace(claim=uuid4()))) == "gone"

    store.run(calls.complete(lease, "null"))
    assert store.run(calls.outcome(lease._replace(claim=uuid4()))) == "gone"


def test_an_enqueue_with_a_key_may_be_repeated_until_it_is_answered(store, session):
    """The first try is still committing when the second one comes: it waits, and is told the same job."""
    enqueue(store)  # the queue is there: it is the key that the second one waits for
    first, second = session(), session()
    first.begin()
    made = enqueue(first, key="order-7")

    again = second.start_waiting(calls.enqueue(new_job(key="order-7")), behind=first)
    first.commit()

    assert again.result(60) == made


def test_an_enqueue_with_a_key_that_was_rolled_back_is_made_by_the_next(store, session):
    other = enqueue(store)
    first, second = session(), session()
    first.begin()
    lost = enqueue(first, key="order-7")

    again = second.start_waiting(calls.enqueue(new_job(key="order-7")), behind=first)
    first.rollback()

    assert again.result(60) != lost
    assert [lease.job_id for lease in claim_many(store)] == [other, again.result()]
