"""Rule 4 (C5): of all that try to end one lease, one gets through; the others get a named refusal."""

from collections import Counter
from functools import partial

import pytest

from faultline import errors
from faultline.store import calls
from tests.promises.sessions import told_at_once
from tests.promises.verbs import SETTLING
from tests.support import claim_one, enqueue, outcomes

ENDINGS = {**SETTLING, "cancel": lambda lease: calls.cancel(lease.job_id)}
REFUSALS = (errors.LeaseLost, errors.WrongState)

# After these the job is queued again, and a cancel that came second may still end it.
STILL_CANCELLABLE = ("fail", "crash", "snooze", "release")


@pytest.mark.parametrize("first", ENDINGS)
def test_of_two_at_once_the_second_waits_and_is_refused(store, session, first):
    """The order is made: the first holds the row until the second waits for it."""
    winner, loser = session(), session()
    for second in ENDINGS:
        enqueue(store)
        lease = claim_one(store)
        winner.begin()
        winner.run(ENDINGS[first](lease))

        waiting = loser.start_waiting(ENDINGS[second](lease), behind=winner)
        winner.commit()
        told = waiting.exception(10)

        may_cancel = second == "cancel" and first in STILL_CANCELLABLE
        nothing_left = second == "cancel" and first in ("cancel_claimed", "cancel")
        assert told is None if may_cancel or nothing_left else isinstance(told, REFUSALS)
        assert len(outcomes(store, lease.job_id)) == 1 + may_cancel
        if told and first in STILL_CANCELLABLE:
            store.run(calls.cancel(lease.job_id))


@pytest.mark.parametrize(
    ("first", "second"), [("complete", "cancel"), ("cancel", "complete"), ("fail", "complete")]
)
def test_when_the_first_gives_up_the_second_gets_through(store, session, first, second):
    enqueue(store)
    lease = claim_one(store)
    unlucky, lucky = session(), session()
    unlucky.begin()
    unlucky.run(ENDINGS[first](lease))

    waiting = lucky.start_waiting(ENDINGS[second](lease), behind=unlucky)
    unlucky.rollback()
    waiting.result(60)

    assert outcomes(store, lease.job_id) == [{"cancel": "cancelled", "complete": "succeeded"}[second]]


@pytest.mark.parametrize(
    "verbs", [("complete",), ("complete", "fail"), ("complete", "cancel"), tuple(ENDINGS)], ids="+".join
)
def test_of_fifty_at_once_one_gets_through(store, verbs):
    enqueue(store)
    lease = claim_one(store)
    acts = [partial(store.run, ENDINGS[verb](lease)) for verb in (verbs * 50)[:50]]

    told = told_at_once(acts)

    of_this_lease = [end for end in store.run(calls.history(lease.job_id)) if end.token == lease.token]
    refused = Counter(type(answer) for answer in told if isinstance(answer, Exception))
    assert set(refused) <= set(REFUSALS)
    # A cancel may come after a failure, of a job that is queued again; and a second cancel is none.
    assert len([end for end in of_this_lease if end.outcome != "cancelled"]) <= 1
    assert 1 <= len(of_this_lease) <= 2
    if "cancel" not in verbs:
        assert refused == {errors.LeaseLost: 49}
        assert len(of_this_lease) == 1


def test_fifty_batches_at_once_complete_a_job_once(store, db):
    enqueue(store)
    lease = claim_one(store)

    told = told_at_once([lambda: store.run(calls.complete_many([lease], ["null"]))] * 50)

    through = [answers for answers in told if answers == []]
    assert len(through) == 1
    assert {answers[0].answer for answers in told if answers} <= {"refused", "busy"}
    assert outcomes(store, lease.job_id) == ["succeeded"]
