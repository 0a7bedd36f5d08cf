"""Rule 9: claims, completions and enqueues raise synchronous_commit for their transaction, never lower it."""

from datetime import timedelta

import pytest

from faultline.store import calls
from tests.promises.verbs import SETTLING
from tests.support import LEASE, NOW, claim_many, claim_one, enqueue, new_job

TOO_LOW = ("off", "local", "remote_write")
ENOUGH = ("on", "remote_apply")


def level(session):
    return session.sql("show synchronous_commit")[0][0]


def something_for_everybody(store, clock):
    """Jobs for each verb to work on: due, leased, waiting, dead and expired ones."""
    leases = {}
    for verb in (*SETTLING, "complete_many", "fail_many", "replay", "replay_many", "reap", "cancel"):
        enqueue(store, queue=verb)
        leases[verb] = claim_one(store, queues=(verb,), lease=LEASE if verb == "reap" else timedelta(hours=1))
    for verb in ("replay", "replay_many"):
        store.run(calls.bury(leases[verb], "no good"))
    waiting = enqueue(store, delay=timedelta(hours=3))
    clock.advance(LEASE * 2)
    enqueue(store, queue="claim")
    return leases, waiting


def every_durable_call(store, clock):
    leases, waiting = something_for_everybody(store, clock)
    yield "enqueue", calls.enqueue(new_job())
    yield "enqueue_many", calls.enqueue_many([new_job()])
    yield "enqueue_each", calls.enqueue_each([new_job()])
    yield "enqueue with a key", calls.enqueue(new_job(key="order-7"))
    yield "enqueue for later", calls.enqueue(new_job(delay=timedelta(hours=1)))
    yield "claim", calls.claim(["claim"], 1, lease=LEASE, claim=leases["complete"].claim)
    yield from ((verb, SETTLING[verb](leases[verb])) for verb in SETTLING)
    yield "complete_many", calls.complete_many([leases["complete_many"]], ["null"])
    yield "fail_many", calls.fail_many([leases["fail_many"]], ["boom"], [LEASE])
    yield "cancel", calls.cancel(leases["cancel"].job_id)
    yield "retry_now", calls.retry_now(waiting)
    yield "replay", calls.replay(leases["replay"].job_id)
    yield "replay_many", calls.replay_many(queue="replay_many")
    yield "promote", calls.promote()
    yield "reap", calls.reap()
    yield "pause", calls.pause("default")
    yield "resume", calls.resume("default")


@pytest.mark.parametrize("set_to", TOO_LOW)
def test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer(store, clock, session, set_to):
    worker = session(options=f"-c synchronous_commit={set_to}")
    assert level(worker) == set_to

    for name, call in every_durable_call(store, clock):
        worker.begin()
        worker.run(call)
        assert (name, level(worker)) == (name, "on")
        worker.commit()
        assert (name, level(worker)) == (name, set_to)


@pytest.mark.parametrize("set_to", ENOUGH)
def test_what_is_enough_is_left_alone(store, clock, session, set_to):
    worker = session(options=f"-c synchronous_commit={set_to}")

    for name, call in every_durable_call(store, clock):
        worker.begin()
        worker.run(call)
        assert (name, level(worker)) == (name, set_to)
        worker.commit()


@pytest.mark.parametrize("set_to", TOO_LOW)
def test_it_is_raised_for_a_role_that_was_set_up_so(database, db, session, set_to):
    """D7: as a well-meaning administrator leaves it."""
    role = f"hasty_{database[-8:]}"
    db.execute(f"create role {role} superuser login")
    db.execute(f"alter role {role} set synchronous_commit = {set_to}")
    try:
        worker = session(user=role)
        worker.begin()
        assert level(worker) == set_to
        job = enqueue(worker)
        assert level(worker) == "on"
        worker.commit()
        worker.begin()
        lease = claim_one(worker)
        assert (lease.job_id, level(worker)) == (job, "on")
        worker.commit()
        worker.close()
    finally:
        db.execute(f"drop role {role}")


def test_a_savepoint_that_is_kept_keeps_it_raised(store, session):
    enqueue(store)
    worker = session(options="-c synchronous_commit=off")
    worker.begin()
    worker.sql("savepoint nested")
    claim_one(worker)
    worker.sql("release nested")

    assert level(worker) == "on"


def test_a_level_lowered_in_the_transaction_is_raised_by_its_last_verb(store, session):
    enqueue(store)
    lease = claim_one(store)
    worker = session()
    worker.begin()
    worker.sql("set local synchronous_commit = off")
    worker.run(calls.fail(lease, "boom", NOW))

    assert level(worker) == "on"


def test_no_verb_lowers_it_by_a_setting_of_its_own(db):
    lowering = db.execute(
        "select proname from pg_proc where pronamespace = 'faultline'::regnamespace"
        " and array_to_string(proconfig, ' ') like '%synchronous_commit%'"
    ).fetchall()

    assert lowering == []


def test_the_epoch_is_raised_durably(store, db, session):
    """The first claim on a new server: what lifts its tokens above all earlier ones must outlive a crash."""
    enqueue(store)
    db.execute("update faultline.settings set system_identifier = system_identifier + 1")
    worker = session(options="-c synchronous_commit=off")
    worker.begin()

    claim_many(worker)

    assert level(worker) == "on"
