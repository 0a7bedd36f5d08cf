"""Bring a database to this version, in one transaction."""

import logging
import time
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Identifier

from faultline.errors import OutOfBounds, SchemaTooNew
from faultline.store.driver import handshake
from faultline.store.driver.connect import connect
from faultline.store.driver.sqlstate import named_errors
from faultline.store.sql_files import LATEST, SchemaMigration, current, fingerprint, first, migrations
from faultline.telemetry import printable

log = logging.getLogger("faultline.store")

LOCK = 0x4641554C54  # "FAULT": a second migrator waits for the first, and then finds nothing to do

ASK_EVERY_SECONDS: Final = 0.1
TELL_AFTER_SECONDS: Final = 10.0
TELL_EVERY_SECONDS: Final = 60.0

HOLDER_QUESTION = """
select held.pid, session.usename, session.application_name
from pg_locks as held
left join pg_stat_activity as session on session.pid = held.pid
where held.locktype = 'advisory' and held.granted and held.objsubid = 1
  and held.database = (select oid from pg_database where datname = current_database())
  and (held.classid::bigint << 32) + held.objid::bigint = %s
"""

OWNER_QUESTION = """
select owner.rolname
from pg_class as class
join pg_roles as owner on owner.oid = class.relowner
where class.relnamespace = to_regnamespace('faultline') and class.relname = 'migrations'
  and owner.rolname <> current_user and has_schema_privilege(owner.oid, class.relnamespace, 'create')
  and case when current_setting('server_version_num')::int < 160000 then pg_has_role(owner.oid, 'member')
           else pg_has_role(owner.oid, 'set') end
"""


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The schema version of a database, and what a migration would change."""

    number: int
    pending: tuple[SchemaMigration, ...]
    functions_differ: bool

    @property
    def is_current(self) -> bool:
        return not self.pending and not self.functions_differ


NOTHING: Final = SchemaState(0, migrations(), functions_differ=True)
"""A database in which Faultline was never installed."""


def migrate(dsn: str) -> SchemaState:
    """Bring the database to this version; returns its state before.

    Safe to repeat, and to run twice at the same time.

    Killed half way, it leaves nothing behind: all of it is one transaction.
    """
    with connect(dsn) as conn, named_errors():
        # At a stricter level, a migrator that waited would not see the changes of the first.
        conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return _migrate(conn)


def _migrate(conn: psycopg.Connection[Any]) -> SchemaState:
    with conn.transaction():
        _take_turn(conn)
        _become_owner(conn)
        before = _standing(conn)
        if not before.is_current:
            conn.execute(_script(before))
    return before


def _take_turn(conn: psycopg.Connection[Any]) -> None:
    """Wait until no other migrator runs, without a limit, and log the holder of the lock if it takes long.

    It polls the lock: any login can hold its number, and a blocking wait could not say which session holds
    it.
    """
    tell_at = time.monotonic() + TELL_AFTER_SECONDS
    while not _is_our_turn(conn):
        if time.monotonic() > tell_at:
            _tell_who_holds_it(conn)
            tell_at = time.monotonic() + TELL_EVERY_SECONDS
        time.sleep(ASK_EVERY_SECONDS)


def _is_our_turn(conn: psycopg.Connection[Any]) -> bool:
    return conn.execute("select pg_try_advisory_xact_lock(%s)", [LOCK]).fetchone() == (True,)


def _tell_who_holds_it(conn: psycopg.Connection[Any]) -> None:
    holder = conn.execute(HOLDER_QUESTION, [LOCK]).fetchone()
    if holder is None:
        return  # released meanwhile
    pid, role, program = holder
    log.warning(
        "another session holds the lock of migrations, and is waited for: session %d of %s (%s). If that is "
        "no migration, end it: select pg_terminate_backend(%d)",
        pid, printable(role or "a role that is not told"), printable(program or "no application_name"), pid,
    )  # fmt: skip


def _become_owner(conn: psycopg.Connection[Any]) -> None:
    """Become the owner of our tables, if this role may: new objects should have the same owner.

    Our functions run as their owner. If a superuser migrated and owned them, they would run as superuser.
    """
    owner = conn.execute(OWNER_QUESTION).fetchone()
    if owner is not None:
        conn.execute(SQL("set local role {}").format(Identifier(owner[0])))


def check(dsn: str) -> SchemaState:
    """The state of the database; nothing is changed."""
    with connect(dsn) as conn, named_errors(), conn.transaction():
        _become_owner(conn)
        return _standing(conn)


def script(since: int = 0) -> str:
    """The installation as one SQL script, for teams that run their own migrations.

    With `since`, the number of the schema that is there: what is newer, and all functions.
    """
    if not 0 <= since <= LATEST:
        raise OutOfBounds(f"this program knows the schemas 1 to {LATEST}, and 0 for none; got {since}")
    before = SchemaState(since, tuple(step for step in migrations() if step.number > since), True)
    return f"begin;\nselect pg_advisory_xact_lock({LOCK});\n{_script(before)}\ncommit;\n"


def _standing(conn: psycopg.Connection[Any]) -> SchemaState:
    row = conn.execute(handshake.QUESTION).fetchone()
    assert row is not None
    version, read_only, installed, _, role = row
    handshake.judge(version, read_only, True, True, role)
    if not installed:
        return NOTHING

    applied = [number for (number,) in conn.execute("select number from faultline.migrations")]
    (functions,) = conn.execute("select functions from faultline.settings").fetchone() or ("",)
    number = max(applied, default=0)
    if number > LATEST:
        raise SchemaTooNew(
            f"the database's schema is at {number}, this program knows {LATEST}; "
            "upgrade faultline-queue before migrating"
        )
    pending = tuple(step for step in migrations() if step.number not in applied)
    return SchemaState(number, pending, functions_differ=functions != fingerprint())


def _script(before: SchemaState) -> str:
    parts = [
        # The meaning of constraints and settings must not depend on the caller's search_path.
        "set local search_path = pg_catalog, pg_temp;",
        "set local check_function_bodies = off;",
        # Only if it is missing: even with `if not exists` it needs the right to create a schema.
        *(["create schema if not exists faultline;"] if before.number == 0 else []),
    ]
    parts += [first()]
    # Migration 0002 creates the table that lists them, so the list is written after all of them.
    parts += [step.sql for step in before.pending]
    parts += [
        f"insert into faultline.migrations (number, name) values ({step.number}, '{step.name}');"
        for step in before.pending
    ]
    parts += [current(), "select faultline.partitions();"]
    parts += [f"update faultline.settings set functions = '{fingerprint()}';"]
    return "\n".join(parts)
