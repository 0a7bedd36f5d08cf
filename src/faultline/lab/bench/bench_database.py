"""Where a bench runs: a server for all of it, and for each case a database made before and dropped after."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.embedded import EmbeddedServer
from faultline.store.driver.connect import connect
from faultline.store.driver.sqlstate import named_errors
from faultline.store.migrate import migrate

CONNECTIONS_MAX: Final = 400
"""Fifty idle workers hold five connections each."""


@contextmanager
def server(dsn: str | None) -> Iterator[str]:
    """The DSN of the server named, or of an embedded one with fsync on."""
    if dsn is not None:
        yield dsn
        return
    with EmbeddedServer.open(settings={"max_connections": str(CONNECTIONS_MAX)}) as ours:
        yield ours.dsn()


@contextmanager
def database(dsn: str) -> Iterator[str]:
    """The DSN of a migrated, empty database on that server."""
    name = f"faultline_bench_{os.getpid()}_{secrets.token_hex(4)}"
    with connect(dsn) as conn, named_errors():
        try:  # from here on: a Ctrl-C may come when it is made and its reply is not read yet
            conn.execute(SQL("create database {}").format(Identifier(name)))
            own = make_conninfo(dsn, dbname=name)
            migrate(own)
            yield own
        finally:
            conn.execute(SQL("drop database if exists {} with (force)").format(Identifier(name)))


def checkpoint(dsn: str) -> bool:
    """Write everything out before the clock starts; False where the role may not."""
    return _try(dsn, SQL("checkpoint"))


def track_claims(dsn: str) -> bool:
    """Have the server time every claim that connections made from now on send; False where we may not ask."""
    with connect(dsn) as conn:
        name = Identifier(conn.info.dbname)
    return _try(dsn, SQL("alter database {} set track_functions = 'pl'").format(name))


def _try(dsn: str, statement: SQL | psycopg.sql.Composed) -> bool:
    with connect(dsn) as conn:
        try:
            conn.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            return False
    return True
