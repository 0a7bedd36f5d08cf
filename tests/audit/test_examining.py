"""How the audit looks: at one snapshot, read-only, in bounded time and memory, and at what the user names."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline.audit import Effects, examine, walk
from faultline.errors import InputError
from faultline.store import calls
from faultline.store.pool import Store
from tests.audit import lives
from tests.support import Clock, claim_one, contents, enqueue

Db = psycopg.Connection[Any]


def test_nothing_is_changed_by_it(db: Db, store: Store, clock: Clock, database: str):
    lives.crashes_and_succeeds(store, clock)
    lives.dies_of_failures(store, clock)
    before = contents(database)

    examine(db)

    assert contents(database) == before


def test_it_reads_a_snapshot_of_its_own_on_any_idle_connection(database: str, store: Store, clock: Clock):
    lives.succeeds(store, clock)
    with psycopg.connect(database, row_factory=psycopg.rows.dict_row) as conn:
        assert examine(conn).holds
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE

        conn.execute("select 1")
        with pytest.raises(InputError, match="a snapshot of its own"):
            examine(conn)


def test_a_role_that_is_read_only_by_default_may_look(db: Db, store: Store, clock: Clock):
    lives.succeeds(store, clock)
    db.execute("set default_transaction_read_only = on")

    assert examine(db).holds


def test_the_walk_sees_every_range_and_steps_over_empty_ones(
    db: Db, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(walk, "RANGE_IDS", 10)
    for _ in range(25):
        enqueue(store, queue="unserved")
    db.execute("select setval('faultline.places', 5000000)")
    lost = lives.waits_for_its_retry(store, clock)
    db.execute("delete from faultline.later where id = %s", [lost])
    told: list[int] = []

    report = examine(db, tell=lambda done, total: told.append(done))

    assert report["WithinBudget"].looked_at == 25
    assert [example.job_id for example in report["NothingLost"].examples] == [lost]
    assert told == sorted(told)
    assert len(told) == 5  # three ranges, the one far out, and the end


def test_all_counterexamples_are_counted_and_the_first_are_told(db: Db, store: Store):
    db.execute("select faultline.enqueue('t', queue => 'unserved') from generate_series(1, 50)")
    db.execute("update faultline.active set lane = 77")

    verdict = examine(db)["NothingLost"]

    assert verdict.found == 50
    assert len(verdict.examples) == 20


def test_when_the_time_is_up_the_report_is_not_complete_and_does_not_hold(db: Db, store: Store, clock: Clock):
    lives.succeeds(store, clock)

    report = examine(db, limit=timedelta(0))

    assert (report.complete, report.holds, report.violated) == (False, False, ())
    assert "the time ran out" in str(report)
    assert examine(db, limit=timedelta(minutes=1)).holds


def test_a_statement_that_outlasts_the_limit_is_ended(db: Db, database: str, store: Store, clock: Clock):
    lives.succeeds(store, clock)
    with psycopg.connect(database) as other:
        other.execute("lock table faultline.dead")

        report = examine(db, limit=timedelta(milliseconds=300))

    assert not report.complete


@pytest.mark.parametrize("table", ["nowhere", "public.nowhere", "a.b.c", 'we"ird', ""])
def test_effects_must_be_a_table_with_job_id_and_token(db: Db, table: str):
    db.execute("create table wrong (job_id bigint)")

    for name in (table, "wrong"):
        with pytest.raises(InputError, match="with columns job_id and token"):
            examine(db, effects=name)


def test_effects_of_every_task_are_counted_by_kind(db: Db, store: Store, clock: Clock):
    db.execute('create schema "My Shop"')
    db.execute('create table "My Shop"."Paid" (job_id bigint, token bigint, effect text)')
    job_id = lives.succeeds_at_the_third_try(store, clock)
    token = db.execute("select token from faultline.ledger where slot = 0").fetchone()[0]
    for effect in ("charge", "receipt"):
        db.execute('insert into "My Shop"."Paid" values (%s, %s, %s)', [job_id, token, effect])

    report = examine(db, effects=Effects("My Shop.Paid", tasks=["test_task"]))

    assert report.holds, str(report)


def test_an_effect_whose_job_was_dropped_with_its_range_is_no_loss(db: Db, store: Store, clock: Clock):
    db.execute("create table effects (job_id bigint, token bigint)")
    done = claim_one_of_its_own(store)
    db.execute("insert into effects values (%s, %s)", [done.job_id, done.token])
    store.run(calls.complete(done, None))
    db.execute("select setval('faultline.places', 5000000)")
    store.run(calls.partitions())
    clock.advance(days=30)
    assert store.run(calls.drop_partitions()) >= 1

    report = examine(db, effects="effects", acknowledged=[done.job_id])

    assert report.holds, str(report)
    assert examine(db, acknowledged=[5_000_001])["NothingLost"].examples[0].job_id == 5_000_001


def claim_one_of_its_own(store: Store):
    enqueue(store)
    return claim_one(store)


def test_a_key_that_outlives_its_job_is_no_loss(db: Db, store: Store, clock: Clock):
    enqueue(store, key="once")
    store.run(calls.complete(claim_one(store), None))
    db.execute("delete from faultline.ledger")

    assert examine(db).holds


def test_a_job_whose_queue_kept_nothing_until_lately_may_be_nowhere(db: Db, store: Store, clock: Clock):
    lives.fails_once_and_leaves_nothing(store, clock)
    store.run(calls.set_retention("silent", "full"))

    report = examine(db)

    assert report.holds, str(report)
    assert len(report["NothingLost"].remarks) == 1


def test_a_quarantined_job_and_its_replay_are_no_violation(db: Db, store: Store, clock: Clock):
    job_id = lives.waits_for_its_retry(store, clock)
    store.run(calls.retry_now(job_id))
    db.execute("update faultline.active set token = 1::bigint << 61")
    assert not examine(db)["TokenGrows"].holds

    assert store.run(calls.quarantine()) == [job_id]
    assert examine(db).holds, str(examine(db))

    store.run(calls.replay(job_id))
    assert examine(db).holds, str(examine(db))
    store.run(calls.complete(claim_one(store), None))
    assert examine(db).holds, str(examine(db))
