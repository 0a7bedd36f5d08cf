"""Where a bench runs: a database of its own, made before and dropped after."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.embedded import EmbeddedServer
from faultline.store.connect import connect
from faultline.store.faults import named_errors
from faultline.store.migrate import migrate


@contextmanager
def throwaway(dsn: str | None) -> Iterator[str]:
    """The DSN of a migrated, empty database on the server named, or on an embedded one with fsync on."""
    if dsn is None:
        with EmbeddedServer.open() as server, _database(server.dsn()) as own:
            yield own
    else:
        with _database(dsn) as own:
            yield own


@contextmanager
def _database(dsn: str) -> Iterator[str]:
    name = f"faultline_bench_{secrets.token_hex(4)}"
    with connect(dsn) as conn, named_errors():
        conn.execute(SQL("create database {}").format(Identifier(name)))
        try:
            own = make_conninfo(dsn, dbname=name)
            migrate(own)
            yield own
        finally:
            conn.execute(SQL("drop database if exists {} with (force)").format(Identifier(name)))


def checkpoint(dsn: str) -> bool:
    """Write everything out before the clock starts; False where the role may not."""
    with connect(dsn) as conn:
        try:
            conn.execute("checkpoint")
        except psycopg.errors.InsufficientPrivilege:
            return False
    return True
