"""Rule 1: a lease stands on the job's own row, and a running job without one cannot exist."""

import psycopg
import pytest

from faultline.store import calls
from tests.support import LEASE, claim_one, contents, enqueue, worker_named

LEASE_COLUMNS = ("claim", "lease_until", "deadline_at", "claimed_at")


def test_a_claim_writes_the_whole_lease_with_one_update(store, db):
    """No moment exists, not even inside the claiming transaction, at which half a lease stands on the row."""
    db.execute("create table versions (token bigint, claim uuid, lease_until timestamptz)")
    db.execute(
        "create function keep_version() returns trigger language plpgsql as"
        " $$ begin insert into public.versions values (new.token, new.claim, new.lease_until);"
        " return new; end $$"
    )
    db.execute(
        "create trigger every_version after update on faultline.active"
        " for each row execute function keep_version()"
    )
    enqueue(store)

    lease = claim_one(store)

    versions = db.execute("select token, claim, lease_until from versions").fetchall()
    (on_the_row,) = db.execute("select lease_until from faultline.active").fetchone()
    assert versions == [(lease.token, lease.claim, on_the_row)]


@pytest.mark.parametrize("column", LEASE_COLUMNS)
def test_a_running_job_without_a_lease_cannot_exist(database, store, db, column):
    enqueue(store)
    claim_one(store)
    before = contents(database)

    with pytest.raises(psycopg.errors.CheckViolation) as refusal:
        db.execute(f"update faultline.active set {column} = null")

    assert refusal.value.diag.constraint_name == "a_running_job_is_leased"
    assert contents(database) == before


@pytest.mark.parametrize("column", LEASE_COLUMNS)
def test_a_free_job_with_half_a_lease_cannot_exist(database, store, db, column):
    enqueue(store)
    value = "gen_random_uuid()" if column == "claim" else "clock_timestamp()"

    with pytest.raises(psycopg.errors.CheckViolation) as refusal:
        db.execute(f"update faultline.active set {column} = {value}")

    assert refusal.value.diag.constraint_name == "a_running_job_is_leased"


@pytest.mark.parametrize("moment", ["infinity", "-infinity"])
def test_a_lease_ends_at_a_real_moment(store, db, moment):
    enqueue(store)
    claim_one(store)

    with pytest.raises(psycopg.errors.CheckViolation) as refusal:
        db.execute("update faultline.active set lease_until = %s", [moment])

    assert refusal.value.diag.constraint_name == "a_lease_ends_at_a_real_moment"


def test_there_is_no_liveness_table(store, db):
    """`workers` is for people: a worker that is not in it, or said goodbye, owns its job as before."""
    worker = worker_named(store, "forgotten")
    enqueue(store)
    lease = claim_one(store, worker=worker)
    store.run(calls.worker_stopped(worker))
    db.execute("delete from faultline.workers")

    (beat,) = store.run(calls.heartbeat([lease], LEASE, worker))
    reaped = store.run(calls.reap())
    store.run(calls.complete(lease, "null"))

    assert beat.answer == "held"
    assert reaped == []
    assert store.run(calls.outcome(lease)) == "succeeded"


def test_a_worker_that_is_well_keeps_nothing_that_ran_out(store, clock):
    """The other way round: being alive in `workers` saves no lease that its worker did not renew."""
    worker = worker_named(store, "alive")
    enqueue(store)
    lease = claim_one(store, worker=worker)
    clock.advance(LEASE * 2)
    store.run(calls.heartbeat([], LEASE, worker))

    reaped = store.run(calls.reap())

    assert [late.token for late in reaped] == [lease.token]
