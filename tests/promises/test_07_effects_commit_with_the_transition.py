"""Rule 7: the handler's rows, the settling and the ledger's entry are one transaction: all of it, or none."""

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.promises.verbs import OUTCOMES, SETTLING, retaken
from tests.support import claim_one, contents, enqueue, outcomes


@pytest.mark.parametrize("verb", SETTLING)
def test_both_or_neither(database, store, session, effects, verb):
    """First the transaction is given up, then it is done: nothing of it, then all of it."""
    enqueue(store)
    lease = claim_one(store)
    before = contents(database)
    worker = session()

    worker.begin()
    worker.sql("insert into effects values ('mine')")
    worker.run(SETTLING[verb](lease))
    worker.rollback()

    assert effects() == 0
    assert contents(database) == before

    with worker.transaction():
        worker.sql("insert into effects values ('mine')")
        worker.run(SETTLING[verb](lease))

    assert effects() == 1
    assert outcomes(store, lease.job_id) == [OUTCOMES[verb]]


@pytest.mark.parametrize("verb", SETTLING)
def test_a_connection_that_dies_before_its_commit_leaves_neither(database, store, session, db, effects, verb):
    enqueue(store)
    lease = claim_one(store)
    before = contents(database)
    worker = session()
    worker.begin()
    worker.sql("insert into effects values ('mine')")
    worker.run(SETTLING[verb](lease))

    db.execute("select pg_terminate_backend(%s, 5000)", [worker.pid])

    assert effects() == 0
    assert contents(database) == before
    store.run(SETTLING[verb](lease))
    assert outcomes(store, lease.job_id) == [OUTCOMES[verb]]


@pytest.mark.parametrize("verb", SETTLING)
def test_others_see_both_at_one_moment(database, store, session, effects, verb):
    enqueue(store)
    lease = claim_one(store)
    before = contents(database)
    worker = session()
    worker.begin()
    worker.run(SETTLING[verb](lease))
    worker.sql("insert into effects values ('mine')")

    assert (effects(), contents(database) == before) == (0, True)
    worker.commit()
    assert (effects(), contents(database) == before) == (1, False)


@pytest.mark.parametrize("verb", SETTLING)
def test_a_lost_lease_takes_the_handlers_rows_with_it(store, clock, session, effects, verb):
    asleep, _ = retaken(store, clock)
    worker = session()

    with pytest.raises(errors.LeaseLost), worker.transaction():
        worker.sql("insert into effects values ('mine')")
        worker.run(SETTLING[verb](asleep))

    assert effects() == 0


@pytest.mark.parametrize("verb", SETTLING)
def test_a_lease_does_not_end_without_its_entry(database, store, db, verb):
    """Where the ledger cannot be written, nothing is: no job leaves `active` untold."""
    enqueue(store)
    lease = claim_one(store)
    db.execute("alter table faultline.ledger add constraint full_disk check (false) not valid")
    before = contents(database)

    with pytest.raises(errors.InputError, match="full disk"):
        store.run(SETTLING[verb](lease))

    assert contents(database) == before


def test_a_batch_does_not_end_without_its_entries(database, store, db):
    enqueue(store)
    lease = claim_one(store)
    db.execute("alter table faultline.ledger add constraint full_disk check (false) not valid")
    before = contents(database)

    with pytest.raises(errors.InputError):
        store.run(calls.complete_many([lease], ["null"]))

    assert contents(database) == before


def test_a_job_enqueued_in_a_transaction_is_there_when_it_commits_and_not_before(store, session, effects):
    """The other end of the rule: what a handler enqueues stands and falls with its completion."""
    enqueue(store)
    lease = claim_one(store)
    worker = session()

    worker.begin()
    lost = enqueue(worker)
    worker.run(calls.complete(lease, "null"))
    worker.rollback()
    assert store.run(calls.get(lost)) is None

    with worker.transaction():
        kept = enqueue(worker)
        worker.run(calls.complete(lease, "null"))
    assert store.run(calls.get(kept)).state == "queued"


def test_a_job_ends_once_whatever_is_written_by_hand(store, db):
    """The ledger's own belt: a second end of one job has no slot to stand in."""
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.complete(lease, "null"))

    with pytest.raises(psycopg.errors.UniqueViolation, match="a_job_ends_once"):
        db.execute(
            "insert into faultline.ledger select job_id, slot, token + 1, created_at, claimed_at, settled_at,"
            " gen_random_uuid(), lane, worker, attempt, max_attempts, crashes, 'cancelled', task, key, error,"
            " args, result from faultline.ledger"
        )
