"""running -> succeeded, many at once: through, refused or busy, each for itself."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import BadDocument
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import (
    all_at_once,
    claim_many,
    claim_one,
    enqueue,
    holding,
    new_job,
    outcomes,
    state_of,
    worker_named,
)


def complete_all(store, leases, results=None, worker=None):
    return store.run(calls.complete_many(leases, results or ["null"] * len(leases), worker))


def test_what_got_through_is_not_mentioned(store):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(10)]))

    answers = complete_all(store, claim_many(store), [str(n) for n in range(10)])

    assert answers == []
    assert [store.run(calls.get(job_id)).result for job_id in ids] == list(range(10))


def test_a_refused_one_does_not_harm_the_others(store, clock):
    enqueue(store)
    asleep = claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())
    awake = claim_one(store)
    other = enqueue(store)

    answers = complete_all(store, [asleep, claim_one(store)])

    assert [(a.job_id, a.token, a.answer, a.reason, a.current_token) for a in answers] == [
        (asleep.job_id, asleep.token, "refused", "token_mismatch", awake.token)
    ]
    assert state_of(store, other) == "succeeded"
    assert state_of(store, awake.job_id) == "running"


def test_a_refused_one_is_recorded_in_the_same_call(store):
    worker = worker_named(store, "late")
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.cancel(lease.job_id))

    complete_all(store, [lease], worker=worker)

    (refusal,) = store.run(calls.refusals(lease.job_id))
    assert (refusal.token, refusal.worker, refusal.reason, refusal.times) == (
        lease.token,
        "late",
        "cancelled",
        1,
    )


def test_a_locked_row_is_busy_and_does_not_stall_the_rest(store, database):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))
    leases = claim_many(store)
    locked = leases[1]

    with holding(database, locked.job_id):
        answers = complete_all(store, leases)

    assert [(a.job_id, a.answer) for a in answers] == [(locked.job_id, "busy")]
    assert [state_of(store, lease.job_id) for lease in leases] == ["succeeded", "running", "succeeded"]
    assert store.run(calls.refusals()) == []


def test_a_busy_one_gets_through_when_repeated_singly(store, database):
    enqueue(store)
    lease = claim_one(store)
    with holding(database, lease.job_id):
        complete_all(store, [lease])

    store.run(calls.complete(lease, "null"))

    assert state_of(store, lease.job_id) == "succeeded"


def test_an_old_and_a_new_lease_of_one_job_in_one_batch(store, clock):
    enqueue(store)
    old = claim_one(store)
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())
    new = claim_one(store)

    answers = complete_all(store, [old, new], ['"old"', '"new"'])

    assert [(a.token, a.answer) for a in answers] == [(old.token, "refused")]
    assert store.run(calls.get(new.job_id)).result == "new"
    assert outcomes(store, new.job_id) == ["expired", "succeeded"]


def test_the_same_lease_twice_in_one_batch_gets_through_once(store):
    job_id = enqueue(store)
    lease = claim_one(store)

    answers = complete_all(store, [lease, lease])

    assert answers == []
    assert outcomes(store, job_id) == ["succeeded"]


def test_a_second_batch_of_the_same_leases_is_refused_as_settled(store):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))
    leases = claim_many(store)
    complete_all(store, leases)

    answers = complete_all(store, leases)

    assert [(a.answer, a.reason) for a in answers] == [("refused", "settled")] * 3


def test_another_claim_or_another_job_is_refused(store):
    enqueue(store), enqueue(store)
    one, other = claim_one(store), claim_one(store)

    answers = complete_all(store, [one._replace(claim=uuid4()), one._replace(job_id=other.job_id)])

    assert [a.answer for a in answers] == ["refused", "refused"]
    assert (state_of(store, one.job_id), state_of(store, other.job_id)) == ("running", "running")


def test_batches_of_the_same_leases_at_once_end_each_job_once(store):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(50)]))
    leases = claim_many(store)

    all_at_once(6, lambda n: complete_all(store, leases if n % 2 else leases[::-1]))

    assert {state_of(store, job_id) for job_id in ids} == {"succeeded"}
    assert all(outcomes(store, job_id) == ["succeeded"] for job_id in ids[:5])


def test_a_result_that_is_no_document_refuses_the_batch_and_changes_nothing(store):
    store.run(calls.enqueue_many([new_job() for _ in range(2)]))
    leases = claim_many(store)

    with pytest.raises(BadDocument):
        complete_all(store, leases, ["null", "{"])

    assert [state_of(store, lease.job_id) for lease in leases] == ["running", "running"]


def test_a_batch_of_nothing_does_nothing(store):
    assert complete_all(store, []) == []


def test_a_batch_in_a_transaction_that_rolls_back_completed_nothing(store, database):
    enqueue(store)
    lease = claim_one(store)

    with psycopg.connect(database) as conn:
        Store.run_in(conn, calls.complete_many([lease], ["null"]))
        conn.rollback()

    assert state_of(store, lease.job_id) == "running"


def test_a_refused_lease_is_counted_each_time_it_tries(store, clock):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.release(lease, delay=timedelta(hours=1)))
    complete_all(store, [lease])
    clock.advance(minutes=5)

    complete_all(store, [lease])

    (refusal,) = store.run(calls.refusals())
    assert refusal.times == 2
    assert refusal.last_at - refusal.first_at >= timedelta(minutes=5)
