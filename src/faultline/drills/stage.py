"""The stage: a database for a drill to play in, its own if it can be had, else a corner of the user's."""

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
from faultline.store.connect import connect, greet
from faultline.store.migrate import migrate
from faultline.store.run import Store

LEASE: Final = timedelta(seconds=1)
PREFIX: Final = "faultline_drill_"

MAKING: Final = 0x4452494C4C
"""Held while a drill makes its database, so that nobody takes it for one left behind."""

LEFT_BEHIND: Final = """
select datname from pg_database as left_over
where starts_with(datname, %s)
  and not exists (select from pg_stat_activity as session where session.datname = left_over.datname)
"""


@dataclass(frozen=True)
class Stage:
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
def stage(dsn: str | None, *, in_place: bool = False) -> Iterator[Stage]:
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
                raise psycopg.errors.InsufficientPrivilege  # what we may not do, we do not do
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
            with connect(own):  # for as long as it is used: that tells others that it was not left behind
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
def _prepared(dsn: str, schema: str, *, own_database: bool) -> Iterator[Stage]:
    if own_database:
        migrate(dsn)
    options = conninfo_to_dict(dsn).get("options") or ""
    prepared = Stage(
        make_conninfo(dsn, options=f"{options} -c search_path={schema}".strip()), schema, own_database
    )
    with connect(dsn) as conn:
        greet(conn)
        if own_database:
            # Rounds hold their fire for one default lease after a gap: in our own database that may be short.
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
    """In somebody else's database: whatever still lives is cancelled, and what has ended is taken away.

    Who may not touch the tables leaves a few ledger entries of a queue that nobody will use again; they go
    with their retention.
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
    return files("faultline.drills").joinpath("sql", f"{name}.sql").read_bytes()
