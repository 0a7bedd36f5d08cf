"""Servers that turn read-only without closing a session, as after some failovers and on a full disk."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate
from tests.promises.standby import a_primary

PATIENCE_SECONDS = float(os.environ.get("FAULTLINE_TEST_PATIENCE", 60))
SESSIONS = "select count(*) from pg_stat_activity where datname = %s and application_name = 'faultline'"


class Turning:
    """A server that takes writes, or takes none; its sessions stay."""

    def __init__(self, server: EmbeddedServer, database: str = "shop") -> None:
        self._admin = server.dsn()
        self._name = database
        server.create_database(database)
        self.dsn = server.dsn(database)
        self.other: Turning | None = None
        """The server that takes writes while this one takes none."""
        migrate(self.dsn)

    @property
    def always_writable(self) -> str:
        """A DSN for what a test itself writes, whatever the server tells others."""
        return make_conninfo(self.dsn, options="-c default_transaction_read_only=off")

    def take_no_writes(self) -> None:
        if self.other is not None:
            self.other.take_writes()
        self._set("on")

    def take_writes(self) -> None:
        self._set("off")
        if self.other is not None:
            self.other.take_no_writes()

    def _set(self, word: str) -> None:
        with psycopg.connect(self._admin, autocommit=True) as conn:
            conn.execute(f"alter system set default_transaction_read_only = {word}".encode())
            conn.execute("select pg_reload_conf()")
        until = time.monotonic() + PATIENCE_SECONDS
        while self._tells() != word:
            assert time.monotonic() < until
            time.sleep(0.01)

    def _tells(self) -> str:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            return str((conn.execute("show default_transaction_read_only").fetchone() or ("",))[0])

    def ask(self, question: str, *args: Any) -> Any:
        with psycopg.connect(self.always_writable, autocommit=True) as conn:
            return conn.execute(question.encode(), args).fetchone()

    def sessions(self) -> int:
        """How many sessions of ours it has."""
        (count,) = self.ask(SESSIONS, self._name)
        return int(count)


class Pair:
    """The old primary, and the new one behind it in a DSN that asks for whichever takes writes."""

    def __init__(self, old: EmbeddedServer, new: EmbeddedServer) -> None:
        self.old, self.new = Turning(old), Turning(new)
        self.old.other = self.new
        self.new.take_no_writes()
        parts = [conninfo_to_dict(server.dsn) for server in (self.old, self.new)]
        self.dsn = make_conninfo(
            self.old.dsn, target_session_attrs="read-write",
            **{word: ",".join(str(part.get(word, "")) for part in parts) for word in ("host", "port")},
        )  # fmt: skip


@contextmanager
def a_pair() -> Iterator[Pair]:
    with a_primary() as old, a_primary() as new:
        yield Pair(old, new)
