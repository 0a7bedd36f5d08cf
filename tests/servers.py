"""The server whose databases tests use: one of the run's own, or one that was borrowed."""

import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.embedded import EmbeddedServer

LEAVE_SECONDS_MAX: Final = 5.0
THROW_OUT: Final = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = %s"


class Server(Protocol):
    """What tests ask of a server, ours or borrowed."""

    def dsn(self, database: str = ...) -> str: ...
    def create_database(self, name: str, template: str | None = None) -> None: ...
    def drop_database(self, name: str) -> None: ...
    def rename_database(self, name: str, new_name: str) -> None: ...
    def end_sessions(self, name: str) -> bool: ...


class Databases:
    """Databases come and go over one connection that is kept: a new one for each would cost as much again."""

    _kept: psycopg.Connection[Any] | None = None

    def dsn(self, database: str = "") -> str:
        raise NotImplementedError

    def create_database(self, name: str, template: str | None = None) -> None:
        # Files are copied in a third of the time that writing them all to the log takes.
        statement = "create database {} template {} strategy file_copy"
        source = Identifier(template or "template1")
        self._conn.execute(SQL(statement).format(Identifier(name), source))

    def drop_database(self, name: str) -> None:
        """Drop a database once its sessions are closed: PostgreSQL looks again only every 100 ms."""
        self.end_sessions(name)
        self._conn.execute(SQL("drop database if exists {} with (force)").format(Identifier(name)))

    def rename_database(self, name: str, new_name: str) -> None:
        self._conn.execute(
            SQL("alter database {} rename to {}").format(Identifier(name), Identifier(new_name))
        )

    def end_sessions(self, name: str) -> bool:
        """Whether all sessions of a database are gone."""
        give_up_at = time.monotonic() + LEAVE_SECONDS_MAX
        while self._conn.execute(THROW_OUT, [name]).fetchone() != (0,):
            if time.monotonic() > give_up_at:
                return False
            time.sleep(0.002)
        return True

    @property
    def _conn(self) -> psycopg.Connection[Any]:
        if self._kept is None:
            self._kept = psycopg.connect(self.dsn(), autocommit=True)
        return self._kept

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()


class BorrowedServer(Databases):
    """A server that the tests do not run; they only make and drop databases of their own."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def dsn(self, database: str = "") -> str:
        return make_conninfo(self._dsn, dbname=database) if database else self._dsn


class OwnServer(Databases, EmbeddedServer):
    """A server of this run, shared by its processes."""

    def dsn(self, database: str = "postgres") -> str:
        return EmbeddedServer.dsn(self, database)

    def close(self) -> None:
        Databases.close(self)
        EmbeddedServer.close(self)


def make_once(server: Server, name: str, source: str | None, prepare: Callable[[str], None]) -> None:
    """Make a template: one process does it, the others wait here; the lock goes with the connection."""
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(hashtext(%s))", [name])
        if conn.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
            draft = f"{name}_draft"
            server.drop_database(draft)
            server.create_database(draft, source)
            prepare(server.dsn(draft))
            server.end_sessions(draft)
            server.rename_database(draft, name)
