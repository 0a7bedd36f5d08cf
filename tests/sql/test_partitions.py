"""The ledger's ranges: two always ahead, dropped when everything in them is old."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.support import SECOND, claim_one, enqueue, outcomes, row_counts, state_of

WIDTH = 1_000_000
COLUMNS = "job_id, slot, token, created_at, settled_at, lane, attempt, max_attempts, crashes, outcome, task"


def ranges(db):
    rows = db.execute(
        "select relname from pg_class join pg_inherits on inhrelid = oid"
        " where inhparent = 'faultline.ledger'::regclass order by oid"
    )
    return sorted(name for (name,) in rows if name != "ledger_default")


def go_to(db, place):
    """As if jobs had been enqueued up to this number."""
    db.execute("select setval('faultline.places', %s)", [place])


def finish_one(store):
    job_id = enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    return job_id


def test_an_installation_starts_with_its_range_and_two_ahead(db):
    assert ranges(db) == ["ledger_0", "ledger_1", "ledger_2"]


def test_nothing_is_made_while_two_are_ahead(store, db):
    assert store.run(calls.partitions()) == 0


def test_two_stay_ahead_of_the_newest_job(store, db):
    go_to(db, WIDTH)

    made = store.run(calls.partitions())

    assert (made, ranges(db)) == (1, ["ledger_0", "ledger_1", "ledger_2", "ledger_3"])


def test_a_leader_that_slept_long_makes_those_that_hold_jobs(store, db):
    go_to(db, 4 * WIDTH)
    enqueue(store)
    go_to(db, 9 * WIDTH)

    assert store.run(calls.partitions()) == 4
    assert ranges(db) == [
        "ledger_0", "ledger_1", "ledger_10", "ledger_11", "ledger_2", "ledger_4", "ledger_9",
    ]  # fmt: skip
    assert store.run(calls.partitions()) == 0


def test_entries_stand_in_their_range_and_the_default_stays_empty(store, db, database):
    finish_one(store)
    go_to(db, WIDTH)
    finish_one(store)

    counts = row_counts(database)

    assert (counts["ledger_0"], counts["ledger_1"], counts["ledger_default"]) == (1, 1, 0)


def test_strays_are_moved_where_they_belong(store, db, database):
    go_to(db, 7 * WIDTH)
    job_id = finish_one(store)
    strayed = row_counts(database)["ledger_default"]

    store.run(calls.partitions())

    counts = row_counts(database)
    assert strayed == 1
    assert (counts["ledger_default"], counts["ledger_7"]) == (0, 1)
    assert state_of(store, job_id) == "succeeded"


@pytest.mark.parametrize("place", [None, 1, 3 * WIDTH])
def test_a_second_end_of_a_job_is_refused_in_every_range(store, db, place):
    """Each partition's index is named, so that the error stays a sentence."""
    if place:
        go_to(db, place * WIDTH if place == 1 else place)
        store.run(calls.partitions())
    job_id = finish_one(store)

    with pytest.raises(psycopg.errors.UniqueViolation, match="a_job_ends_once"):
        db.execute(
            f"insert into faultline.ledger ({COLUMNS})"
            " select job_id, 0, token + 1, created_at, settled_at, lane, 1, 1, 0, 'cancelled', task"
            " from faultline.ledger where job_id = %s",
            [job_id],
        )


def test_a_lease_has_one_entry(store, db):
    enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", timedelta(0)))

    with pytest.raises(psycopg.errors.UniqueViolation, match="a_job_ends_once"):
        db.execute("insert into faultline.ledger select * from faultline.ledger")


@pytest.mark.parametrize(
    ("outcome", "slot"), [("succeeded", 1), ("cancelled", 1), ("failed", 0), ("expired", 7)]
)
def test_an_end_stands_in_slot_0_and_anything_else_in_its_tokens(store, db, outcome, slot):
    enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", timedelta(0)))

    with pytest.raises(psycopg.errors.CheckViolation, match="an_end_stands_in_slot_0"):
        db.execute(
            f"insert into faultline.ledger ({COLUMNS}) select 99, %s, 1, created_at, settled_at, lane,"
            " 1, 1, 0, %s, task from faultline.ledger",
            [slot, outcome],
        )


def test_a_range_past_its_retention_is_dropped(store, clock, db):
    job_id = finish_one(store)
    go_to(db, WIDTH + 1)
    clock.advance(days=8)

    dropped = store.run(calls.drop_partitions())

    assert (dropped, "ledger_0" in ranges(db)) == (1, False)
    assert state_of(store, job_id) is None


def test_a_range_within_its_retention_stays(store, clock, db):
    finish_one(store)
    go_to(db, WIDTH + 1)
    clock.advance(days=6)

    assert store.run(calls.drop_partitions()) == 0


def test_the_newest_entry_of_a_range_counts(store, clock, db):
    finish_one(store)
    clock.advance(days=8)
    finish_one(store)
    go_to(db, WIDTH + 1)

    assert store.run(calls.drop_partitions()) == 0


def test_the_retention_can_be_set(store, clock, db):
    store.run(calls.configure(ledger_retention=timedelta(days=30)))
    finish_one(store)
    go_to(db, WIDTH + 1)
    clock.advance(days=29)
    early = store.run(calls.drop_partitions())
    clock.advance(days=2)

    assert early == 0
    assert store.run(calls.drop_partitions()) == 1


def test_the_range_that_is_being_filled_stays(store, clock, db):
    finish_one(store)
    clock.advance(days=400)

    assert store.run(calls.drop_partitions()) == 0


@pytest.mark.parametrize("alive", ["queued", "running", "later", "dead"])
def test_a_range_stays_while_a_job_of_it_lives(store, clock, db, alive):
    """Its leases are the only record of who may still write to it."""
    job_id = enqueue(store, delay=timedelta(days=3650 - 60) if alive == "later" else None)
    if alive == "running":
        claim_one(store)
    if alive == "dead":
        store.run(calls.bury(claim_one(store), "no use"))
    go_to(db, WIDTH + 1)
    clock.advance(days=30)

    dropped = store.run(calls.drop_partitions())

    assert dropped == 0
    assert state_of(store, job_id) is not None


def test_a_range_that_is_being_read_is_not_waited_for(store, clock, db, database):
    finish_one(store)
    go_to(db, WIDTH + 1)
    clock.advance(days=8)

    with psycopg.connect(database) as reader:
        reader.execute("select * from faultline.ledger")
        while_it_reads = store.run(calls.drop_partitions())

    assert while_it_reads == 0
    assert store.run(calls.drop_partitions()) == 1


def test_making_a_range_does_not_wait_for_a_lock_on_the_ledger(store, db, database):
    go_to(db, WIDTH)

    with psycopg.connect(database) as other:
        other.execute("lock table faultline.ledger_default in share mode")
        meanwhile = store.run(calls.partitions())

    assert meanwhile == 0
    assert "ledger_3" not in ranges(db)
    assert store.run(calls.partitions()) == 1


def test_ranges_can_be_made_while_jobs_settle(store, db, database):
    """ATTACH takes no lock that an entry in the making would hold up."""
    enqueue(store)
    lease = claim_one(store)
    go_to(db, WIDTH)

    with psycopg.connect(database) as worker:
        worker.execute("select faultline.complete(%s, %s, %s)", [lease.job_id, lease.token, lease.claim])
        made = store.run(calls.partitions())

    assert made == 1
    assert outcomes(store, lease.job_id) == ["succeeded"]


def test_a_range_made_after_another_was_dropped_gets_the_next_number(store, clock, db):
    finish_one(store)
    go_to(db, WIDTH + 1)
    clock.advance(days=8)
    store.run(calls.drop_partitions())

    store.run(calls.partitions())

    assert ranges(db) == ["ledger_1", "ledger_2", "ledger_3"]


LIMIT = "select current_setting('idle_in_transaction_session_timeout')"


@pytest.mark.parametrize(
    "call",
    [calls.partitions(), calls.drop_partitions(), calls.round_(SECOND), calls.reap()],
    ids=lambda call: call.name,
)
@pytest.mark.parametrize(
    ("before", "inside"), [("0", "5s"), ("1min", "5s"), ("2s", "2s"), ("300ms", "300ms")]
)
def test_a_chore_limits_how_long_its_transaction_may_lie_idle(database, call, before, inside):
    """For the rest of that transaction; a limit that is lower stays."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(f"set idle_in_transaction_session_timeout = '{before}'")
        with conn.transaction():
            Store.run_in(conn, call)
            limit = conn.execute(LIMIT).fetchone()

        assert (limit, conn.execute(LIMIT).fetchone()) == ((inside,), (before,))


def test_a_session_that_dropped_a_range_and_is_left_idle_holds_no_completion_up_for_long(
    store, clock, db, database
):
    finish_one(store)
    go_to(db, WIDTH + 1)
    clock.advance(days=8)
    job_id = enqueue(store)
    lease = claim_one(store)

    with psycopg.connect(database) as left:
        assert Store.run_in(left, calls.drop_partitions()) == 1
        store.run(calls.complete(lease, "null"))

        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            left.execute("select 1")
        left.close()

    assert state_of(store, job_id) == "succeeded"
