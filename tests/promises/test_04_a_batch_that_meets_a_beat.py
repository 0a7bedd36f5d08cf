"""Rule 4, for batches: what is locked is what is changed, also when a beat came after the statement began.

A statement sees the rows of the moment it began. A beat that commits a moment later makes a new version of
the row: that one is locked, and a change that goes by its place in the same statement does not see it.
"""

from datetime import timedelta
from typing import Any

import pytest

from faultline.store import calls
from tests.promises.rewriting import rewrite
from tests.support import LEASE, claim_one, enqueue, state_of

BEGUN = 4201  # the advisory lock at which a batch is stopped, after its statement began and before it locks
NAMED = {
    "complete_many": "as done (id, token, claim, result)\n  cross join lateral (",
    "heartbeat": "as beat (id, token, claim)\n    cross join lateral (",
}
PAUSE = f"(select pg_catalog.pg_advisory_xact_lock_shared({BEGUN})) as paused\n    cross join lateral "


@pytest.fixture
def stopped(database, session):
    """Starts a batch verb, and does something else after its statement began and before it locks."""
    gate, worker = session(), session()

    def start(function: str, call: Any, meanwhile: Any) -> Any:
        words = NAMED[function]
        rewrite(database, function, words, f"{words.removesuffix('(')}{PAUSE}(")
        gate.begin()
        gate.sql("select pg_advisory_xact_lock(%s)", BEGUN)
        answer = worker.start_waiting(call, behind=gate)
        meanwhile()
        gate.commit()
        return answer.result(60)

    return start


def test_a_completion_that_meets_a_beat_ends_the_job(store, stopped):
    enqueue(store)
    lease = claim_one(store)

    answers = stopped(
        "complete_many",
        calls.complete_many([lease], ["null"]),
        lambda: store.run(calls.heartbeat([lease], LEASE)),
    )

    assert answers == []
    assert state_of(store, lease.job_id) == "succeeded"
    assert store.run(calls.reap()) == []


def test_a_beat_that_meets_another_change_renews_what_it_says_is_held(store, db, stopped):
    enqueue(store)
    lease = claim_one(store)
    later = LEASE + timedelta(minutes=5)

    touch = "update faultline.active set lease_until = lease_until + interval '1 second'"
    (beat,) = stopped("heartbeat", calls.heartbeat([lease], later), lambda: db.execute(touch))

    assert beat.answer == "held"
    (left,) = db.execute("select lease_until - clock_timestamp() from faultline.active").fetchone()
    assert left > LEASE + timedelta(minutes=1)
