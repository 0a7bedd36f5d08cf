"""running -> queued | dead: fail and bury."""

from datetime import timedelta

import pytest

from faultline.errors import LeaseLost
from faultline.store import calls
from tests.support import NOW, claim_many, claim_one, enqueue, outcomes, row_counts, state_of


def test_a_failed_attempt_is_tried_again_after_its_delay(store, clock):
    job_id = enqueue(store)

    answer = store.run(calls.fail(claim_one(store), "boom", timedelta(minutes=2)))

    assert answer == "queued"
    job = store.run(calls.get(job_id))
    assert (job.state, job.error, job.attempt, job.crashes) == ("queued", "boom", 1, 0)
    store.run(calls.promote())
    assert claim_many(store) == []
    clock.advance(minutes=2)
    store.run(calls.promote())
    assert claim_one(store).job_id == job_id


def test_every_failed_attempt_is_an_entry(store):
    job_id = enqueue(store)
    for _ in range(2):
        store.run(calls.fail(claim_one(store), "boom", NOW))
        store.run(calls.promote())

    history = store.run(calls.history(job_id))

    assert [(entry.outcome, entry.attempt, entry.error) for entry in history] == [
        ("failed", 1, "boom"),
        ("failed", 2, "boom"),
    ]


def test_the_last_attempt_that_fails_buries_the_job(store):
    job_id = enqueue(store, max_attempts=2)
    first = store.run(calls.fail(claim_one(store), "boom", NOW))
    store.run(calls.promote())

    last = store.run(calls.fail(claim_one(store), "boom again", NOW))

    job = store.run(calls.get(job_id))
    assert (first, last, job.state) == ("queued", "dead", "dead")
    assert job.error == "out of attempts: boom again"
    assert outcomes(store, job_id) == ["failed", "dead"]


def test_a_dead_job_keeps_its_args(store):
    job_id = enqueue(store, max_attempts=1, args='{"order": 7}')

    store.run(calls.fail(claim_one(store), "boom", NOW))

    assert store.run(calls.get(job_id)).args == {"order": 7}


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        (timedelta(days=-1), timedelta(0)),
        (timedelta(days=99_999), timedelta(days=30)),
        (timedelta(hours=1), timedelta(hours=1)),
    ],
)
def test_a_delay_is_never_negative_and_never_over_thirty_days(store, clock, asked, waited):
    """A back-off that overflowed was negative by 106,751,992 days on one server and an error on another."""
    job_id = enqueue(store)

    store.run(calls.fail(claim_one(store), "boom", asked))

    assert abs(store.run(calls.get(job_id)).run_at - clock.now() - waited) < timedelta(seconds=2)


def test_an_error_of_megabytes_is_cut_and_the_attempt_settled(store):
    job_id = enqueue(store)

    store.run(calls.fail(claim_one(store), "x" * 5_000_000, NOW))

    assert store.run(calls.get(job_id)).error == "x" * 8192


def test_an_error_is_kept_as_text_whatever_it_holds(store):
    job_id = enqueue(store)
    error = "<script>\x1b[31m'; drop table jobs;--\u202e🦀\n%s"

    store.run(calls.fail(claim_one(store), error, NOW))

    assert store.run(calls.get(job_id)).error == error


@pytest.mark.parametrize("verb", ["fail", "bury"])
def test_a_lost_lease_can_neither_fail_nor_bury(store, database, verb):
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.release(lease))
    newer = claim_one(store)
    before = row_counts(database)

    with pytest.raises(LeaseLost) as lost:
        store.run(calls.fail(lease, "late", NOW) if verb == "fail" else calls.bury(lease, "late"))

    assert lost.value.current_token == newer.token
    assert row_counts(database) == before
    assert state_of(store, newer.job_id) == "running"


def test_a_buried_job_is_dead_with_its_reason_however_many_attempts_are_left(store):
    job_id = enqueue(store, max_attempts=10)

    store.run(calls.bury(claim_one(store), "card stolen", "Declined: 41"))

    job = store.run(calls.get(job_id))
    assert (job.state, job.error) == ("dead", "card stolen: Declined: 41")
    assert outcomes(store, job_id) == ["dead"]


def test_a_job_buried_without_a_reason_still_has_one(store):
    job_id = enqueue(store)

    store.run(calls.bury(claim_one(store), ""))

    assert "buried by its handler" in store.run(calls.get(job_id)).error


def test_a_dead_job_is_not_claimed(store):
    enqueue(store)
    store.run(calls.bury(claim_one(store), "no use"))

    store.run(calls.promote())

    assert claim_many(store) == []
