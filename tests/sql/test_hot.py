"""Claims and heartbeats touch no index: every one of them is a heap-only update."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from faultline.embedded import EmbeddedServer
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.support import LEASE, claim_many, new_job


@pytest.fixture(scope="module")
def quiet_database() -> Iterator[str]:
    """A database on a server of its own.

    A transaction in any other database of a server holds back the horizon of every snapshot, and a page
    cannot be pruned for the next heap-only update.
    """
    with EmbeddedServer.open(fsync=False, settings={"autovacuum": "off"}) as server:
        migrate(server.dsn())
        yield server.dsn()


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ("{}", {}),
        ('{"order": 12345, "customer": "Ada"}', {}),
        ('{"text": "' + "x" * 300 + '"}', {}),
        ("{}", {"expires_in": timedelta(hours=1)}),
    ],
)
def test_every_claim_and_every_heartbeat_is_heap_only(quiet_database, args, options):
    """The best of a few tries: the server's own writers pin a page now and then, which delays its pruning."""
    with psycopg.connect(quiet_database, autocommit=True) as db:
        store = Store(quiet_database, connections_max=1)
        best = max(heap_only_share(store, db, args, options) for _ in range(10))
        store.close()

    assert best == 1.0


def heap_only_share(store, db, args, options):
    """Of all updates by the claim and two beats of some pages of jobs, how many were heap-only."""
    before = updates(db)
    store.run(calls.enqueue_many([new_job(args=args, **options) for _ in range(200)]))
    leases = [lease for _ in range(2) for lease in claim_many(store, 100)]
    for _ in range(2):
        store.run(calls.heartbeat(leases, LEASE))
    store.run(calls.complete_many(leases, ["null"] * 200))
    with store.connection() as conn:
        conn.execute("select pg_stat_force_next_flush()")
    all_of_them, heap_only = (after - then for after, then in zip(updates(db), before, strict=True))
    assert all_of_them == 600
    return heap_only / all_of_them


def updates(db):
    """How many updates the jobs' table has seen, and how many of them were heap-only."""
    return db.execute(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'active'"
    ).fetchone()


def test_only_ids_and_places_are_indexed(db):
    indexed = db.execute(
        "select pg_get_indexdef(indexrelid) from pg_index"
        " where indrelid = 'faultline.active'::regclass order by 1"
    ).fetchall()

    assert [line.split(" USING ")[1] for (line,) in indexed] == [
        "btree (expires_at) WHERE (expires_at IS NOT NULL)",
        "btree (limit_id, gate, pos) WHERE (limit_id IS NOT NULL)", "btree (lane, pos)", "btree (id)",
    ]  # fmt: skip


@pytest.mark.parametrize("table", ["rounds", "workers", "lanes"])
def test_rows_that_change_often_have_room_on_their_page(db, table):
    options = db.execute(
        "select reloptions from pg_class where oid = %s::regclass", [f"faultline.{table}"]
    ).fetchone()[0]

    assert any(option.startswith("fillfactor=") for option in options)
