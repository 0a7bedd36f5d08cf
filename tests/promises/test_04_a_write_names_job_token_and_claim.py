"""Rule 4: a worker's write names job, token and claim under the row's lock; no row, no write: it raises."""

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.promises.rewriting import pause_before
from tests.promises.verbs import FENCED, SETTLING, reaped_lease, retaken
from tests.support import LEASE, claim_many, claim_one, contents, enqueue, holding, outcomes, state_of


@pytest.mark.parametrize("verb", FENCED)
def test_a_lease_that_was_taken_back_writes_nothing(database, store, clock, verb):
    asleep = reaped_lease(store, clock)
    before = contents(database)

    with pytest.raises(errors.LeaseLost) as refusal:
        store.run(FENCED[verb](asleep))

    assert refusal.value.reason == "settled"
    assert contents(database) == before


@pytest.mark.parametrize("verb", FENCED)
def test_a_lease_that_another_worker_has_now_writes_nothing(database, store, clock, verb):
    asleep, awake = retaken(store, clock)
    before = contents(database)

    with pytest.raises(errors.LeaseLost) as refusal:
        store.run(FENCED[verb](asleep))

    assert (refusal.value.reason, refusal.value.current_token) == ("token_mismatch", awake.token)
    assert contents(database) == before


@pytest.mark.parametrize("verb", SETTLING)
def test_a_lease_settles_once(database, store, verb):
    enqueue(store)
    lease = claim_one(store)
    store.run(SETTLING[verb](lease))
    before = contents(database)

    for again in SETTLING.values():
        with pytest.raises(errors.LeaseLost):
            store.run(again(lease))

    assert contents(database) == before


def test_the_refusal_is_sqlstate_ls001_and_says_what_to_do(database, store, clock):
    asleep, _ = retaken(store, clock)

    with pytest.raises(psycopg.Error) as refusal, psycopg.connect(database) as conn:
        conn.execute("select faultline.complete(%(job_id)s, %(token)s, %(claim)s)", asleep.proof)

    assert refusal.value.sqlstate == "LS001"
    assert "lease lost" in refusal.value.diag.message_primary
    assert "Stop here" in refusal.value.diag.message_hint


def test_a_fenced_job_cannot_be_reaped(store, clock, session):
    """Its lease has run out, but its transaction is about to commit: the fence holds the row until then."""
    enqueue(store)
    lease = claim_one(store)
    clock.advance(LEASE * 2)
    worker = session()
    worker.begin()
    worker.run(calls.fence(lease))

    reaped = session().run_at_once(calls.reap())
    worker.run(calls.complete(lease, "null"))
    worker.commit()

    assert reaped == []
    assert outcomes(store, lease.job_id) == ["succeeded"]


def test_a_fenced_job_cannot_be_cancelled_before_its_worker_is_done(store, session):
    enqueue(store)
    lease = claim_one(store)
    worker, person = session(), session()
    worker.begin()
    worker.run(calls.fence(lease))

    cancelling = person.start_waiting(calls.cancel(lease.job_id), behind=worker)
    worker.run(calls.complete(lease, "null"))
    worker.commit()

    with pytest.raises(errors.WrongState, match="succeeded"):
        cancelling.result(60)


def test_a_fence_lets_rows_that_refer_to_the_job_go_in(store, db, session):
    """FOR NO KEY UPDATE, not FOR UPDATE: a foreign key's check does not wait for it."""
    db.execute("create table attachments (job bigint references faultline.active on delete cascade)")
    job = enqueue(store)
    lease = claim_one(store)
    worker, another = session(), session()
    worker.begin()
    worker.run(calls.fence(lease))

    another.sql_at_once("insert into attachments values (%s)", job)

    assert db.execute("select count(*) from attachments").fetchone() == (1,)


def test_a_fence_last_rolls_back_all_that_a_late_worker_wrote(store, clock, session, effects):
    asleep, awake = retaken(store, clock)
    late = session()

    with pytest.raises(errors.LeaseLost), late.transaction():
        late.sql("insert into effects values ('late')")
        late.run(calls.complete(asleep, "null"))

    store.run(calls.complete(awake, "null"))
    assert effects() == 0


def test_a_loss_swallowed_in_a_savepoint_is_raised_again_at_the_end(store, clock, session, effects):
    """The fence may be caught on the way; the completion at the end cannot pass without the lease."""
    asleep, _ = retaken(store, clock)
    late = session()
    late.begin()
    late.sql("insert into effects values ('late')")
    late.sql("savepoint nested")
    with pytest.raises(errors.LeaseLost):
        late.run(calls.fence(asleep))
    late.sql("rollback to nested")

    with pytest.raises(errors.LeaseLost):
        late.run(calls.complete(asleep, "null"))
    late.sql("commit")  # of a transaction that has failed: PostgreSQL answers ROLLBACK

    assert effects() == 0


def test_a_reap_between_a_workers_look_and_its_write_is_seen(store, clock, session, effects):
    """What a plain look would miss: the lease is lost after the transaction began and before it ended."""
    enqueue(store)
    lease = claim_one(store)
    worker = session()
    worker.begin()
    worker.sql("select from faultline.active where id = %s", lease.job_id)
    worker.sql("insert into effects values ('mine')")
    clock.advance(LEASE * 2)
    store.run(calls.reap())

    with pytest.raises(errors.LeaseLost):
        worker.run(calls.complete(lease, "null"))
    worker.rollback()

    assert effects() == 0
    assert state_of(store, lease.job_id) == "queued"


BATCHES = {
    "succeeded": lambda leases: calls.complete_many(leases, ["null"] * len(leases)),
    "failed": lambda leases: calls.fail_many(leases, ["boom"] * len(leases), [LEASE] * len(leases)),
}


@pytest.mark.parametrize("ending", BATCHES)
def test_a_batch_answers_for_each_job_and_waits_for_none(database, store, clock, session, ending):
    lost = reaped_lease(store, clock)
    jobs = [enqueue(store) for _ in range(2)]
    through, busy = claim_many(store)
    assert [through.job_id, busy.job_id] == jobs

    with holding(database, busy.job_id):
        answers = session().run_at_once(BATCHES[ending]([lost, busy, through]))

    assert {answer.job_id: answer.answer for answer in answers} == {
        lost.job_id: "refused",
        busy.job_id: "busy",
    }
    assert outcomes(store, through.job_id) == [ending]
    store.run(calls.complete(busy, "null"))
    assert outcomes(store, busy.job_id) == ["succeeded"]


def test_a_heartbeat_waits_for_no_lock_and_a_locked_job_is_busy_not_lost(database, store, session):
    enqueue(store)
    enqueue(store)
    free, busy = claim_many(store)

    with holding(database, busy.job_id):
        beats = session().run_at_once(calls.heartbeat([busy, free], LEASE))

    assert {beat.job_id: beat.answer for beat in beats} == {free.job_id: "held", busy.job_id: "busy"}


def test_a_job_that_comes_free_while_a_batch_is_answered_gets_one_answer(database, store, session):
    """It was locked when the batch looked and settled when it looked again: busy, and not refused as well."""
    pause_before(database, "report_unsettled", "select array_agg(named.id)", key=4001)
    enqueue(store)
    lease = claim_one(store)
    single, batch, gate = session(), session(), session()
    gate.sql("select pg_advisory_lock(4001)")
    single.begin()
    single.run(calls.complete(lease, "null"))

    answering = batch.start_waiting(calls.complete_many([lease], ["null"]), behind=gate)
    single.commit()
    gate.sql("select pg_advisory_unlock(4001)")

    assert [answer.answer for answer in answering.result(60)] == ["busy"]
    assert store.run(calls.refusals()) == []


def test_two_batches_in_opposite_order_do_not_deadlock(store, session):
    for _ in range(20):
        enqueue(store)
    leases = claim_many(store)
    first, second = session(), session()
    first.begin()
    first.run(calls.heartbeat(leases[10:], LEASE))

    answers = second.run_at_once(calls.complete_many(leases[::-1], ["null"] * 20))
    first.run(calls.heartbeat(leases[:10], LEASE))
    first.commit()

    assert sorted(answer.job_id for answer in answers) == [lease.job_id for lease in leases[10:]]
    assert {answer.answer for answer in answers} == {"busy"}
