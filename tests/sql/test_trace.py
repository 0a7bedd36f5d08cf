"""The trace context that travels with a job: who asked for it, and which claims have taken it up."""

from datetime import timedelta
from uuid import uuid4

import pytest

from faultline.errors import OutOfBounds
from faultline.store import calls
from faultline.store.rows import ClaimedRow
from tests.support import LEASE, NOW, claim_one, enqueue, new_job

PRODUCER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
FIRST = "00-11111111111111111111111111111111-1111111111111111-01"
SECOND = "00-22222222222222222222222222222222-2222222222222222-01 vendor=opaque value"


def claimed(store, trace=None) -> ClaimedRow:
    (row,) = store.run(calls.claim(["default"], 1, lease=LEASE, claim=uuid4(), trace=trace))
    assert isinstance(row, ClaimedRow)
    return row


def test_a_claim_gives_back_the_context_a_job_was_enqueued_in(store):
    enqueue(store, trace=PRODUCER)

    assert claimed(store).trace == PRODUCER


def test_a_job_without_tracing_has_no_trace(store):
    enqueue(store)

    assert claimed(store).trace is None


@pytest.mark.parametrize(
    "options", [{"key": "order-7"}, {"delay": timedelta(0)}, {"delay": timedelta(minutes=1)}]
)
def test_every_way_of_enqueuing_keeps_it(store, clock, options):
    store.run(calls.enqueue_many([new_job(trace=PRODUCER, **options)]))
    clock.advance(minutes=1)
    store.run(calls.promote())

    assert claimed(store).trace == PRODUCER


def test_each_claim_finds_the_one_before_it(store):
    """So an attempt can name the one it follows, also when that one crashed and wrote nothing."""
    enqueue(store, trace=PRODUCER)

    first = claimed(store, FIRST)
    release(store)
    second = claimed(store, SECOND)

    assert first.trace == f"{PRODUCER}\n\n{FIRST}"
    assert second.trace == f"{PRODUCER}\n{FIRST}\n{SECOND}"


def test_a_claim_that_is_not_traced_leaves_what_is_there(store):
    enqueue(store, trace=PRODUCER)
    claimed(store, FIRST)
    release(store)

    assert claimed(store).trace == f"{PRODUCER}\n\n{FIRST}"


def test_a_job_enqueued_outside_any_trace_still_has_its_claims(store):
    enqueue(store)

    assert claimed(store, FIRST).trace == f"\n\n{FIRST}"


def test_it_survives_failing_dying_and_being_replayed(store):
    job_id = enqueue(store, trace=PRODUCER, max_attempts=2)

    store.run(calls.fail(claim_one(store), "first", NOW))
    store.run(calls.promote())
    store.run(calls.fail(claim_one(store), "second", NOW))
    store.run(calls.replay(job_id))

    assert claimed(store).trace == PRODUCER


def test_it_survives_a_reap_a_snooze_and_a_retry_by_hand(store, clock):
    job_id = enqueue(store, trace=PRODUCER)

    claim_one(store)
    clock.advance(LEASE + timedelta(seconds=1))
    store.run(calls.reap())
    store.run(calls.promote())
    store.run(calls.snooze(claim_one(store), timedelta(hours=1)))
    store.run(calls.retry_now(job_id))

    assert claimed(store).trace == PRODUCER


def test_a_claim_asked_again_tells_it_again(store):
    enqueue(store, trace=PRODUCER)
    claim = uuid4()
    first = store.run(calls.claim(["default"], 1, lease=LEASE, claim=claim))

    assert store.run(calls.claim(["default"], 1, lease=LEASE, claim=claim, resend=True)) == first


@pytest.mark.parametrize("trace", ["", "x" * 601, "two\nlines", "caf\u00e9"])
def test_what_is_no_context_is_refused_at_the_door(store, trace):
    with pytest.raises(OutOfBounds, match="trace context"):
        enqueue(store, trace=trace)


def release(store) -> None:
    """Give back whatever runs."""
    with store.connection() as conn:
        conn.execute(
            "select faultline.release(job.id, job.token, job.claim) from faultline.active as job"
            " where job.claim is not null"
        )
