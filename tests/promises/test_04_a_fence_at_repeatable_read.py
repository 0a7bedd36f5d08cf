"""Rule 4 (C4): above READ COMMITTED the fence comes first; a reclaim in between is told as "try again"."""

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.promises.verbs import FENCED, SETTLING, reaped_lease
from tests.support import LEASE, claim_one, contents, enqueue, outcomes

LEVELS = ("repeatable read", "serializable")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("verb", SETTLING)
def test_a_transaction_that_fenced_first_keeps_its_job_to_the_end(
    store, clock, session, effects, level, verb
):
    enqueue(store)
    lease = claim_one(store)
    worker = session()
    worker.begin(level)
    worker.run(calls.fence(lease))
    clock.advance(LEASE * 2)

    assert session().run_at_once(calls.reap()) == []
    worker.sql("insert into effects values ('mine')")
    worker.run(SETTLING[verb](lease))
    worker.commit()

    assert effects() == 1
    assert len(outcomes(store, lease.job_id)) == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("verb", FENCED)
def test_a_reclaim_behind_an_old_snapshot_is_told_as_try_again(
    database, store, clock, session, effects, level, verb
):
    """Its snapshot still shows the job as its own: 40001, and a fresh transaction learns of the loss."""
    enqueue(store)
    lease = claim_one(store)
    worker = session()
    worker.begin(level)
    worker.sql("insert into effects values ('late')")
    clock.advance(LEASE * 2)
    store.run(calls.reap())
    store.run(calls.promote())
    claim_one(store)
    before = contents(database)

    with pytest.raises(psycopg.errors.SerializationFailure) as told:
        worker.run(FENCED[verb](lease))
    worker.rollback()

    assert told.value.sqlstate == "40001"
    assert contents(database) == before
    assert effects() == 0
    with pytest.raises(errors.LeaseLost):
        worker.run(FENCED[verb](lease))


@pytest.mark.parametrize("level", LEVELS)
def test_a_lease_lost_before_the_snapshot_is_told_as_lost(store, clock, session, level):
    asleep = reaped_lease(store, clock)
    worker = session()
    worker.begin(level)

    with pytest.raises(errors.LeaseLost):
        worker.run(calls.fence(asleep))


@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_behind_an_old_snapshot_never_tells_success(store, clock, session, level):
    enqueue(store)
    lease = claim_one(store)
    worker = session()
    worker.begin(level)
    worker.sql("select count(*) from faultline.active")
    clock.advance(LEASE * 2)
    store.run(calls.reap())

    with pytest.raises(psycopg.errors.SerializationFailure):
        worker.run(calls.complete_many([lease], ["null"]))
    worker.rollback()

    assert outcomes(store, lease.job_id) == ["expired"]


@pytest.mark.parametrize("level", LEVELS)
def test_asking_for_a_job_behind_an_old_snapshot_ends(store, clock, session, level):
    """The chase of a job through its tables is a loop; with a frozen snapshot it has to end."""
    job = enqueue(store)
    lease = claim_one(store)
    person = session()
    person.begin(level)
    person.sql("select count(*) from faultline.active")
    store.run(calls.fail(lease, "boom", LEASE))

    with pytest.raises(psycopg.errors.SerializationFailure):
        person.run(calls.cancel(job))
