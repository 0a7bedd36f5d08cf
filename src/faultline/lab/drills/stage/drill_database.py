"""The stage: a drill's own database where it can be created, else a corner of the user's."""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.resources import files
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.embedded import EmbeddedServer
from faultline.errors import FaultlineError
from faultline.store import calls
from faultline.store.driver.connect import check_server, connect
from faultline.store.migrate import migrate
from faultline.store.pool import Store

LEASE: Final = timedelta(seconds=1)
PREFIX: Final = "faultline_drill_"

MAKING: Final = 0x4452494C4C
"""Held while a drill makes its database, so that no other drill takes it for one left behind."""

LEFT_BEHIND: Final = """
select datname from pg_database as left_over
where starts_with(datname, %s)
  and not exists (select from pg_stat_activity as session where session.datname = left_over.datname)
"""


@dataclass(frozen=True)
class DrillDatabase:
    """Where a drill plays: a database, a schema in it for what it writes down, a queue of its own."""

    dsn: str
    schema: str
    own_database: bool
    server: EmbeddedServer | None = None
    """Ours to stop and start, where the drill plays on a server of its own."""

    @property
    def queue(self) -> str:
        return self.schema.replace("_", "-")

    @property
    def words(self) -> str:
        """Where it plays, for people."""
        if self.server is not None:
            return "on an embedded server"
        return "in a database of its own" if self.own_database else "in a queue and a schema of its own"

    def connect(self) -> psycopg.Connection[Any]:
        return connect(self.dsn)


@contextlib.contextmanager
def stage(dsn: str | None, *, in_place: bool = False) -> Iterator[DrillDatabase]:
    """A stage on the server that `dsn` names, or on an embedded one; gone when the block ends.

    Its own database if it can be had, else, or if it is asked for, a corner of the one named.
    """
    name = PREFIX + secrets.token_hex(4)
    with contextlib.ExitStack() as stack:
        if dsn is None:
            server = stack.enter_context(EmbeddedServer.open())
            place = stack.enter_context(_prepared(server.dsn(), name, own_database=True))
            yield replace(place, server=server)
            return
        try:
            if in_place:
                raise psycopg.errors.InsufficientPrivilege  # skip what this role may not do
            own = stack.enter_context(_own_database(dsn, name))
        except psycopg.errors.InsufficientPrivilege:
            yield stack.enter_context(_prepared(dsn, name, own_database=False))
        else:
            yield stack.enter_context(_prepared(own, name, own_database=True))


@contextlib.contextmanager
def _own_database(dsn: str, name: str) -> Iterator[str]:
    own = make_conninfo(dsn, dbname=name)
    with connect(dsn) as conn:
        conn.execute("select pg_advisory_lock(%s)", [MAKING])
        _clear_up(conn)
        conn.execute(SQL("create database {}").format(Identifier(name)))
        try:
            with connect(own):  # held while in use: other drills see that it was not left behind
                conn.execute("select pg_advisory_unlock(%s)", [MAKING])
                yield own
        finally:
            conn.execute(SQL("drop database if exists {} with (force)").format(Identifier(name)))


def _clear_up(conn: psycopg.Connection[Any]) -> None:
    """Drop the databases of drills that were killed."""
    for (name,) in conn.execute(LEFT_BEHIND, [PREFIX]).fetchall():
        with contextlib.suppress(psycopg.Error):
            conn.execute(SQL("drop database {}").format(Identifier(name)))


@contextlib.contextmanager
def _prepared(dsn: str, schema: str, *, own_database: bool) -> Iterator[DrillDatabase]:
    if own_database:
        migrate(dsn)
    options = conninfo_to_dict(dsn).get("options") or ""
    prepared = DrillDatabase(
        make_conninfo(dsn, options=f"{options} -c search_path={schema}".strip()), schema, own_database
    )
    with connect(dsn) as conn:
        check_server(conn)
        if own_database:
            # After a gap a round reaps nothing for one default lease: in our own database that may be short.
            Store.run_in(conn, calls.configure(default_lease=LEASE))
        conn.execute(SQL("create schema {}").format(Identifier(schema)))
    try:
        with prepared.connect() as conn:
            conn.execute(source("stage"))
        yield prepared
    finally:
        with connect(dsn) as conn:
            conn.execute(SQL("drop schema if exists {} cascade").format(Identifier(schema)))
            if not own_database:
                _leave_nothing(conn, prepared.queue)


def _leave_nothing(conn: psycopg.Connection[Any], queue: str) -> None:
    """In a user's database: cancel the jobs that still live, and remove those that have ended.

    An account without rights on the tables leaves a few ledger entries of a queue that is not used again;
    they go with their retention.
    """
    ours = [one.queue for one in Store.run_in(conn, calls.list_queues()) if one.queue.startswith(queue)]
    for name in ours:
        for job in Store.run_in(conn, calls.list_jobs(None, name, None, None, 1000)):
            if not job.state.ended:
                with contextlib.suppress(FaultlineError):
                    Store.run_in(conn, calls.cancel(job.id, "the drill is over"))
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege), conn.transaction():
        for statement in source("leave_nothing").decode().split(";\n\n"):
            conn.execute(statement.encode(), {"queue": queue})


def source(name: str) -> bytes:
    """One of the drills' own SQL files."""
    return files("faultline.lab.drills").joinpath("sql", f"{name}.sql").read_bytes()
