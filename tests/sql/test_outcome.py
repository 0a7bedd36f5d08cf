"""What became of a lease whose settling was never answered: read from rows, never guessed."""

import threading
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, claim_one, enqueue


def outcome(store, lease):
    return store.run(calls.outcome(lease))


def test_a_lease_that_is_still_ours_is_running(store):
    enqueue(store)

    assert outcome(store, claim_one(store)) == "running"


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (lambda lease: calls.complete(lease, "null"), "succeeded"),
        (lambda lease: calls.complete_many([lease], ["null"]), "succeeded"),
        (lambda lease: calls.fail(lease, "boom", NOW), "failed"),
        (lambda lease: calls.bury(lease, "no use"), "dead"),
        (lambda lease: calls.snooze(lease, timedelta(hours=1)), "snoozed"),
        (lambda lease: calls.release(lease), "released"),
        (lambda lease: calls.cancel_claimed(lease), "cancelled"),
        (lambda lease: calls.cancel(lease.job_id), "cancelled"),
    ],
    ids=["complete", "complete_many", "fail", "bury", "snooze", "release", "cancel_claimed", "cancel"],
)
def test_every_end_of_a_lease_can_be_asked_for(store, end, answer):
    enqueue(store)
    lease = claim_one(store)
    store.run(end(lease))

    assert outcome(store, lease) == answer


def test_an_old_lease_keeps_its_own_answer(store):
    enqueue(store)
    old = claim_one(store)
    store.run(calls.release(old))
    new = claim_one(store)
    while_it_runs = outcome(store, old)
    store.run(calls.complete(new, "null"))

    assert while_it_runs == "released"
    assert (outcome(store, old), outcome(store, new)) == ("released", "succeeded")


def test_another_claim_learns_nothing(store):
    """An answer meant for the holder is not given to a guess."""
    enqueue(store)
    lease = claim_one(store)
    guess = lease._replace(claim=uuid4())
    before = outcome(store, guess)
    store.run(calls.complete(lease, "null"))

    assert (before, outcome(store, guess)) == ("gone", "gone")


def test_the_question_waits_for_a_backend_that_is_still_committing(store, database):
    """A plain look could say "not committed" and be overtaken."""
    enqueue(store)
    lease = claim_one(store)
    answers = []

    with psycopg.connect(database) as slow:
        Store.run_in(slow, calls.complete(lease, "null"))
        asking = threading.Thread(target=lambda: answers.append(outcome(store, lease)))
        asking.start()
        asking.join(0.2)
        waited = asking.is_alive()
        slow.commit()
        asking.join(60)

    assert waited
    assert answers == ["succeeded"]


def test_the_question_after_a_rollback_says_running(store, database):
    enqueue(store)
    lease = claim_one(store)

    with psycopg.connect(database) as slow:
        Store.run_in(slow, calls.complete(lease, "null"))
        slow.rollback()

    assert outcome(store, lease) == "running"
