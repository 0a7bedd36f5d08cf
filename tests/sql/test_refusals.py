"""A refused write is recorded: whose, with which token, and which token was the newest."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from faultline.store import calls, readers
from faultline.store.call import Call
from tests.support import NOW, claim_one, enqueue, worker_named


def refusal_of(store, lease, worker=None):
    return store.run(calls.refused(lease, worker))


def test_a_refusal_names_the_worker_the_token_and_the_newest(store, clock):
    worker = worker_named(store, "asleep")
    enqueue(store)
    asleep = claim_one(store, worker=worker)
    clock.advance(minutes=1)
    store.run(calls.reap())
    store.run(calls.promote())
    awake = claim_one(store)

    answer = refusal_of(store, asleep, worker)

    (noted,) = store.run(calls.refusals(asleep.job_id))
    assert answer == ("token_mismatch", awake.token)
    assert (noted.token, noted.current_token, noted.worker, noted.reason) == (
        asleep.token, awake.token, "asleep", "token_mismatch",
    )  # fmt: skip


def test_the_reasons_are_told_apart(store, clock):
    def lease():
        enqueue(store)
        return claim_one(store)

    settled = lease()
    store.run(calls.complete(settled, "null"))
    cancelled = lease()
    store.run(calls.cancel(cancelled.job_id))
    expired = lease()
    clock.advance(minutes=1)
    store.run(calls.reap())
    gone = settled._replace(job_id=404)

    assert refusal_of(store, settled) == ("settled", settled.token)
    assert refusal_of(store, cancelled) == ("cancelled", cancelled.token)
    assert refusal_of(store, expired) == ("settled", expired.token)
    assert refusal_of(store, gone) == ("gone", None)


def test_a_higher_token_goes_before_every_other_reason(store):
    enqueue(store)
    old = claim_one(store)
    store.run(calls.release(old))
    new = claim_one(store)
    store.run(calls.cancel(new.job_id))

    assert refusal_of(store, old) == ("token_mismatch", new.token)


def test_a_dead_job_still_tells_a_late_writer_its_highest_token(store):
    enqueue(store)
    old = claim_one(store)
    store.run(calls.release(old))
    new = claim_one(store)
    store.run(calls.bury(new, "no use"))

    assert refusal_of(store, old) == ("token_mismatch", new.token)
    assert refusal_of(store, new) == ("settled", new.token)


def test_one_lease_that_tries_often_is_one_row_with_a_count(store, clock):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.fail(lease, "boom", NOW))
    for _ in range(3):
        refusal_of(store, lease)
        clock.advance(seconds=10)

    (noted,) = store.run(calls.refusals())

    assert noted.times == 3
    assert noted.last_at - noted.first_at >= timedelta(seconds=20)


def test_two_workers_that_try_are_two_rows(store):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.fail(lease, "boom", NOW))

    for name in ("ada", "bob"):
        refusal_of(store, lease, worker_named(store, name))

    assert sorted(noted.worker for noted in store.run(calls.refusals())) == ["ada", "bob"]


def test_refusals_are_listed_newest_first_for_one_job_or_all(store, clock):
    for _ in range(3):
        enqueue(store)
        lease = claim_one(store)
        store.run(calls.cancel(lease.job_id))
        refusal_of(store, lease)
        clock.advance(seconds=1)

    listed = store.run(calls.refusals(most=2))

    assert [noted.job_id for noted in listed] == [3, 2]
    assert [noted.job_id for noted in store.run(calls.refusals(1))] == [1]


def test_recording_a_refusal_does_not_touch_the_job(store):
    enqueue(store)
    lease = claim_one(store)
    before = store.run(calls.get(lease.job_id))

    refusal_of(store, lease._replace(claim=uuid4()))

    assert store.run(calls.get(lease.job_id)) == before


@pytest.mark.parametrize("reason", ["token_mismatch", "settled", "cancelled", "gone"])
def test_a_refusal_has_one_of_four_reasons(db, reason):
    insert = (
        "insert into faultline.refusals (job_id, token, reason, first_at, last_at)"
        " values (1, 1, %s, now(), now())"
    )

    db.execute(insert, [reason])

    with pytest.raises(Exception, match="a_refusal_has_one_of_four_reasons"):
        db.execute(insert, [reason + "?"])


def test_only_leases_that_were_given_are_recorded(store):
    """A record that any login can write proves nothing."""
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.fail(lease, "boom", NOW))
    forged = [
        lease._replace(claim=uuid4()),
        lease._replace(token=lease.token + 1),
        lease._replace(job_id=404),
        lease._replace(token=lease.token + 1, claim=UUID(int=0)),
    ]

    for one in forged:
        refusal_of(store, one)
    assert store.run(calls.refusals()) == []
    store.run(calls.complete_many([*forged[:3], lease], [None] * 4))
    assert [noted.token for noted in store.run(calls.refusals())] == [lease.token]
    refusal_of(store, lease._replace(claim=UUID(int=0)))  # a token alone proves nothing
    assert store.run(Call("refused", {"job_id": lease.job_id, "token": lease.token}, read=readers.first)) == (
        "settled",
        lease.token,
    )
    assert [noted.times for noted in store.run(calls.refusals())] == [1]
