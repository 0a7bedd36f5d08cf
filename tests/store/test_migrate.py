"""A database is brought to this version in one transaction: whole, or not at all."""

import secrets
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.errors import PermissionDenied, ReadOnlyServer, SchemaTooNew, ServerUnavailable
from faultline.store import calls
from faultline.store import migrate as migrating
from faultline.store.migrate import check, migrate, script
from faultline.store.pool import Store
from faultline.store.sql_files import LATEST, SchemaMigration, current, migrations
from scripts import tools
from tests.support import LEASE, all_at_once, claim_one, enqueue, row_counts

NUMBERS = [step.number for step in migrations()]

# Everything that a schema is made of, as text that does not depend on object ids.
PARTS = {
    "functions": "select oid::regprocedure::text, prosrc, proconfig::text, prosecdef::text,"
    " provolatile::text, proacl::text, pg_get_function_result(oid)"
    " from pg_proc where pronamespace = 'faultline'::regnamespace",
    "relations": "select relname, relkind::text, reloptions::text,"
    " coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::\"char\", relowner))::text"
    " from pg_class where relnamespace = 'faultline'::regnamespace",
    "columns": "select attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull::text"
    " from pg_attribute join pg_class on pg_class.oid = attrelid"
    " where relnamespace = 'faultline'::regnamespace and attnum > 0",
    "constraints": "select conname, coalesce(nullif(conrelid, 0)::regclass::text, contypid::regtype::text),"
    " pg_get_constraintdef(oid)"
    " from pg_constraint where connamespace = 'faultline'::regnamespace and contype <> 'n'",
    "indexes": "select indexname, indexdef from pg_indexes where schemaname = 'faultline'",
    "views": "select viewname, definition from pg_views where schemaname = 'faultline'",
    "types": "select typname, typtype::text from pg_type where typnamespace = 'faultline'::regnamespace",
    "schema": "select nspname, coalesce(nspacl::text, '') from pg_namespace where nspname = 'faultline'",
}


def described(dsn):
    """The schema as it stands; the same for two databases that have the same."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("set search_path = pg_catalog")
        return {part: sorted(conn.execute(query).fetchall(), key=str) for part, query in PARTS.items()}


def is_empty(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        return conn.execute("select to_regnamespace('faultline') is null").fetchone()[0]


def applied(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        return [
            number for (number,) in conn.execute("select number from faultline.migrations order by number")
        ]


def test_an_empty_database_is_brought_to_this_version(empty_database):
    before = migrate(empty_database)

    assert (before.number, before.is_current) == (0, False)
    assert check(empty_database).is_current
    assert applied(empty_database) == NUMBERS


def test_a_migrated_database_works(empty_database):
    migrate(empty_database)
    store = Store(empty_database)

    enqueue(store)
    store.run(calls.complete(claim_one(store), "null"))
    store.close()

    assert row_counts(empty_database)["ledger"] == 1


def test_migrating_again_changes_nothing(empty_database):
    migrate(empty_database)
    before, version = described(empty_database), changed_by(empty_database)

    again = migrate(empty_database)

    assert again.is_current
    assert described(empty_database) == before
    assert changed_by(empty_database) == version


def changed_by(dsn):
    """The transactions that made the functions and wrote the settings."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        return conn.execute(
            "select (select array_agg(distinct xmin::text) from pg_proc"
            " where pronamespace = 'faultline'::regnamespace),"
            " (select xmin::text from faultline.settings)"
        ).fetchone()


def test_migrators_at_once_queue_up_and_all_succeed(empty_database):
    standings = all_at_once(4, lambda _: migrate(empty_database))

    assert sorted(standing.number for standing in standings) == [0, LATEST, LATEST, LATEST]
    assert applied(empty_database) == NUMBERS


def test_migrators_at_once_succeed_whatever_isolation_their_role_starts_with(empty_database):
    """A snapshot taken before the wait would not see what the first one made."""
    strict = make_conninfo(empty_database, options="-c default_transaction_isolation=serializable")

    standings = all_at_once(3, lambda _: migrate(strict))

    assert sum(standing.number == 0 for standing in standings) == 1
    assert check(empty_database).is_current


def test_a_migration_that_waits_says_for_whom_and_goes_on(empty_database, monkeypatch, caplog):
    """Any login can hold the number that migrators queue up behind."""
    monkeypatch.setattr(migrating, "TELL_AFTER_SECONDS", 0.3)
    named = make_conninfo(empty_database, application_name="a\x1bb")
    with psycopg.connect(named, autocommit=True) as stranger:
        stranger.execute("select pg_advisory_lock(%s)", [migrating.LOCK])
        holder = f"session {stranger.info.backend_pid} of {stranger.info.user}"
        waiting = threading.Thread(target=migrate, args=[empty_database])
        waiting.start()
        give_up_at = time.monotonic() + 30
        while "holds the lock" not in caplog.text and time.monotonic() < give_up_at:
            time.sleep(0.05)
        time.sleep(0.5)
    waiting.join(60)

    assert check(empty_database).is_current
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert holder in told.getMessage()
    assert told.getMessage().isprintable()


def test_a_migration_killed_half_way_leaves_nothing_and_the_next_one_finishes(empty_database, monkeypatch):
    monkeypatch.setattr(migrating, "current", lambda: "select pg_sleep(60);" + current())
    died = []

    def migrate_and_die():
        try:
            migrate(empty_database)
        except ServerUnavailable as fault:
            died.append(fault)

    victim = threading.Thread(target=migrate_and_die)
    victim.start()

    kill_the_sleeper(empty_database)
    victim.join(60)
    monkeypatch.undo()

    assert len(died) == 1
    assert is_empty(empty_database)
    assert check(empty_database).number == 0
    migrate(empty_database)
    assert check(empty_database).is_current


def kill_the_sleeper(dsn):
    """End the backend that sleeps in the middle of its migration."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for _ in range(200):
            if conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and wait_event = 'PgSleep'"
            ).fetchone():
                return
            time.sleep(0.02)
    raise AssertionError("no session was migrating")


def test_checking_changes_nothing(empty_database, database):
    before = described(database)

    missing, present = check(empty_database), check(database)

    assert (missing.number, [step.number for step in missing.pending]) == (0, NUMBERS)
    assert (present.number, present.pending, present.functions_differ) == (LATEST, (), False)
    assert is_empty(empty_database)
    assert described(database) == before


def test_the_script_makes_the_same_schema_as_the_migration(empty_database, database):
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute(script())

    assert check(empty_database).is_current
    assert described(empty_database) == described(database)


@pytest.mark.skipif(shutil.which("psql") is None, reason=tools.why_not("psql"))
def test_the_script_runs_in_psql(empty_database, database):
    ran = subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", empty_database],
        input=script(),
        text=True,
        capture_output=True,
    )

    assert ran.returncode == 0, ran.stderr
    assert described(empty_database) == described(database)


def test_a_script_that_fails_leaves_nothing(empty_database):
    broken = script().replace("select faultline.partitions();", "select 1/0;")

    with (
        psycopg.connect(empty_database, autocommit=True) as conn,
        pytest.raises(psycopg.errors.DivisionByZero),
    ):
        conn.execute(broken)

    assert is_empty(empty_database)


def test_other_functions_are_noticed_and_replaced(database, db):
    db.execute("update faultline.settings set functions = 'of another release'")
    db.execute(
        "create or replace function faultline.wake(queue text) returns void language sql as $$ select $$"
    )
    noticed = check(database)

    migrate(database)

    assert (noticed.functions_differ, noticed.pending) == (True, ())
    assert check(database).is_current
    assert (
        "pg_notify"
        in db.execute("select prosrc from pg_proc where oid = 'faultline.wake'::regproc").fetchone()[0]
    )


def test_an_old_signature_is_dropped(database, db):
    """Left behind, it would not fail: it would silently win."""
    expected = described(database)
    db.execute(
        "create function faultline.wake(queue text, urgent int) returns void language sql as $$ select $$"
    )
    db.execute("create function faultline.no_longer() returns int language sql as $$ select 1 $$")
    db.execute("create view faultline.no_longer_seen as select 1 as one")
    db.execute("update faultline.settings set functions = ''")

    migrate(database)

    assert described(database) == expected


def test_swapping_functions_keeps_all_data(database, db):
    store = Store(database)
    enqueue(store, key="k")
    store.run(calls.complete(claim_one(store), "null"))
    enqueue(store)
    store.close()
    before = row_counts(database)
    db.execute("update faultline.settings set functions = ''")

    migrate(database)

    assert row_counts(database) == before


def test_workers_call_on_while_functions_are_swapped(database, db):
    """Their prepared statements survive it."""
    stop = threading.Event()
    done: list[int] = []

    def work():
        store = Store(database)
        while not stop.is_set():
            enqueue(store)
            store.run(calls.complete(claim_one(store), "null"))
            done.append(1)
        store.close()

    worker = threading.Thread(target=work)
    worker.start()
    for _ in range(3):
        db.execute("update faultline.settings set functions = ''")
        migrate(database)
    seen = len(done)
    give_up_at = time.monotonic() + 20
    while len(done) <= seen and worker.is_alive() and time.monotonic() < give_up_at:
        time.sleep(0.01)
    stop.set()
    worker.join(60)

    assert 0 < seen < len(done)
    assert row_counts(database)["ledger"] == len(done)


def test_only_what_is_missing_is_applied(database, monkeypatch):
    extra = SchemaMigration(LATEST + 1, "extra", "create table faultline.extra (id bigint primary key);")
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), extra))
    monkeypatch.setattr(migrating, "LATEST", LATEST + 1)

    before = migrate(database)

    assert (before.number, before.pending) == (LATEST, (extra,))
    assert applied(database) == [*NUMBERS, LATEST + 1]
    assert "extra" in row_counts(database)


def test_a_failing_step_takes_the_whole_migration_back(database, monkeypatch):
    good = SchemaMigration(LATEST + 1, "good", "create table faultline.good (id bigint);")
    bad = SchemaMigration(LATEST + 2, "bad", "create table faultline.good (id bigint);")
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), good, bad))
    before = described(database)

    with pytest.raises(psycopg.errors.DuplicateTable):
        migrate(database)

    assert described(database) == before
    assert applied(database) == NUMBERS


@pytest.mark.parametrize("act", [migrate, check])
def test_a_newer_schema_is_refused(database, db, act):
    db.execute("insert into faultline.migrations (number, name) values (%s, 'tomorrow')", [LATEST + 1])
    before = described(database)

    with pytest.raises(SchemaTooNew, match="upgrade faultline-queue"):
        act(database)

    assert described(database) == before


def test_a_read_only_session_is_refused(empty_database):
    read_only = make_conninfo(empty_database, options="-c default_transaction_read_only=on")

    with pytest.raises(ReadOnlyServer):
        migrate(read_only)

    assert is_empty(empty_database)


@pytest.fixture
def owner(empty_database):
    """The DSN of an owner of the database who is no superuser."""
    role = f"owner_{secrets.token_hex(6)}"
    with psycopg.connect(empty_database, autocommit=True) as conn:
        name = conn.info.dbname
        conn.execute(f"create role {role} login nosuperuser nocreatedb nocreaterole")
        conn.execute(f'alter database "{name}" owner to {role}')
        yield make_conninfo(empty_database, user=role)
        conn.execute(f'alter database "{name}" owner to current_user')
        conn.execute(f"drop owned by {role} cascade")
        conn.execute(f"drop role {role}")


def test_the_owner_of_a_database_needs_no_superuser(owner):
    migrate(owner)
    store = Store(owner)

    enqueue(store, key="k")
    lease = claim_one(store)
    store.run(calls.complete(lease, "null"))
    store.run(calls.partitions())
    store.run(calls.drop_partitions())
    store.close()

    assert check(owner).is_current
    assert lease.token == 1


def test_a_role_that_may_not_is_told_so(database):
    role = f"stranger_{secrets.token_hex(6)}"
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(f"create role {role} login")
        try:
            with pytest.raises(PermissionDenied):
                check(make_conninfo(database, user=role))
        finally:
            conn.execute(f"drop role {role}")


@pytest.mark.parametrize("search_path", ["evil,pg_catalog", "faultline", "evil,faultline,public"])
def test_whose_search_path_migrates_does_not_matter(empty_database, database, search_path):
    """A function of the same name in the way must not become part of a constraint."""
    with psycopg.connect(empty_database, autocommit=True) as conn:
        conn.execute("create schema evil")
        conn.execute("create function evil.octet_length(text) returns int language sql immutable return 0")
        conn.execute("create function evil.char_length(text) returns int language sql immutable return 1")
        conn.execute(
            "create function evil.isfinite(timestamptz) returns boolean language sql immutable return true"
        )

    migrate(make_conninfo(empty_database, options=f"-c search_path={search_path}"))

    assert described(empty_database) == described(database)


OLD_VIEW = """
create view faultline.jobs as
select id, args from faultline.active union all select job_id, args from faultline.ledger;
create function faultline.partitions() returns void language sql as '';
drop table faultline.granted;
"""

OLD_ROWS = """
insert into faultline.queues (name) values ('default');
insert into faultline.lanes (queue, priority) values ('default', 0);

insert into faultline.active (id, pos, created_at, lane, max_attempts, task, args)
select nextval('faultline.places'), 1, now(), id, 3, 'work', '{"n": [1, 2.50]}' from faultline.lanes;

insert into faultline.ledger (
  job_id, slot, token, created_at, settled_at, lane, attempt, max_attempts, crashes, outcome, task, args,
  result)
select nextval('faultline.places'), 0, 1, now(), now(), id, 1, 3, 0, 'succeeded', 'work', '{}', '"é"'
from faultline.lanes;
"""


@contextmanager
def made_by(number, dsn, monkeypatch):
    """A database as the first so many migrations leave it, with a connection for what it held."""
    before = migrations()[:number]
    monkeypatch.setattr(migrating, "migrations", lambda: before)
    # Today's functions and views name columns and tables that later migrations add.
    monkeypatch.setattr(migrating, "current", lambda: OLD_VIEW)
    monkeypatch.setattr(migrating, "NOTHING", migrating.SchemaState(0, before, functions_differ=True))
    with psycopg.connect(dsn, autocommit=True) as conn:
        # Today's functions look at it once, at the end of a migration; the old ones did not know it.
        conn.execute("create schema faultline")
        conn.execute("create sequence faultline.server_mark")
        # Rows of these two are parameters of today's functions.
        for table in ("limits", "task_limits"):
            conn.execute(f"create table faultline.{table} (id int)")
        migrate(dsn)
        conn.execute("drop sequence faultline.server_mark")
        for table in ("limits", "task_limits"):
            conn.execute(f"drop table faultline.{table} cascade")
        monkeypatch.undo()
        yield conn


def test_documents_of_a_database_from_before_they_were_text_are_kept(empty_database, monkeypatch):
    """Its views read the columns that change."""
    with made_by(8, empty_database, monkeypatch) as conn:
        conn.execute(OLD_ROWS)

    assert migrate(empty_database).number == 8
    assert check(empty_database).is_current

    store = Store(empty_database)
    waiting, done = store.run(calls.get(1)), store.run(calls.get(2))
    (job,) = store.run(calls.claim(["default"], 1, lease=LEASE, claim=uuid4()))
    store.close()
    assert (waiting.args, done.args, done.result) == ({"n": [1, 2.5]}, {}, "é")
    assert job.args == '{"n": [1, 2.50]}'


def test_jobs_of_a_database_from_before_key_seeds_get_one_each(empty_database, monkeypatch):
    with made_by(8, empty_database, monkeypatch) as conn:
        conn.execute(OLD_ROWS)
        conn.execute(
            "insert into faultline.active (id, pos, created_at, lane, max_attempts, task, args)"
            " select 1000 + n, n, now(), 1, 3, 'work', '{}' from generate_series(1, 99) as n"
        )

        migrate(empty_database)

        seeds = conn.execute("select key_seed from faultline.active").fetchall()
    assert len(set(seeds)) == 100
