"""EmbeddedServer: a PostgreSQL of your own, for as long as you hold it."""

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, Self
from urllib.parse import quote

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.embedded.data_folder import SUPERUSER
from faultline.embedded.holder import ServerHolder
from faultline.embedded.launch import QUIET_SECONDS_MAX, socket_dsn, start, wait_ready
from faultline.embedded.server_folder import Card, ServerFolder
from faultline.errors import ServerFailed

HALTS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}
NOTHING: Mapping[str, str] = MappingProxyType({})


class EmbeddedServer:
    """A running PostgreSQL in a folder, stopped when the last process that holds it closes it or dies.

    >>> with EmbeddedServer.open() as server:  # doctest: +SKIP
    ...     psycopg.connect(server.dsn())
    """

    def __init__(self, place: ServerFolder, hold: ServerHolder, card: Card, *, keep: bool) -> None:
        self._place, self._hold, self._card, self._keep = place, hold, card, keep
        self._closed = False

    @classmethod
    def open(
        cls,
        folder: Path | None = None,
        *,
        settings: Mapping[str, str] = NOTHING,
        fsync: bool = True,
        keep: bool | None = None,
    ) -> Self:
        """Hold the server of a folder, starting it if it does not run.

        Without a folder the server gets a private one, deleted with it. With one, its data stays there, and
        other processes that open the same folder share the server; `settings` and `fsync` are then those of
        the one that started it. `keep=False` deletes a named folder, too, after its last holder.
        """
        keep = folder is not None if keep is None else keep
        try:
            place = ServerFolder.private() if folder is None else ServerFolder.at(Path(folder))
            with place.turn():
                hold, card = _attach(place) or _start(place, settings, fsync=fsync, keep=keep)
        except OSError as error:
            raise ServerFailed(f"no server can live in {folder or 'a temporary folder'}: {error}") from error
        return cls(place, hold, card, keep=keep)

    @property
    def folder(self) -> Path:
        return self._place.folder

    @property
    def version(self) -> str:
        """The server's version in its own words, such as `18.6`."""
        return self._card.version

    @property
    def binaries(self) -> Path:
        """The folder of the server's programs: `pg_dump` and `pg_basebackup` of the same version."""
        return Path(self._card.binaries)

    @property
    def pid(self) -> int:
        """The process id of the server's first process."""
        pid = self._hold.pid()
        if pid is None:
            raise ServerFailed("the embedded PostgreSQL is halted, so it has no process")
        return pid

    @property
    def is_running(self) -> bool:
        """False once the server has ended by itself."""
        return not self._hold.is_gone()

    def dsn(self, database: str = "postgres") -> str:
        """The DSN through the Unix socket, which only this account can reach."""
        return socket_dsn(self._card, database)

    def tcp_dsn(self, database: str = "postgres") -> str:
        """The DSN over TCP on 127.0.0.1, with a password: for proxies, and tools that need TCP."""
        return make_conninfo(
            host="127.0.0.1",
            port=self._card.port,
            user=SUPERUSER,
            password=self._place.read_password(),
            dbname=database,
            sslmode="disable",
        )

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1; a folder that is kept keeps it, unless another program has it."""
        return self._card.port

    def url(self, database: str = "postgres") -> str:
        """The same as a URL, for most tools; in a folder that is kept it does not change."""
        password = quote(self._place.read_password() or "", safe="")
        return f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str | None = None) -> None:
        source = Identifier(template or "template1")
        self._execute(SQL("create database {} template {}").format(Identifier(name), source))

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, and end the connections to it."""
        self._execute(SQL("drop database if exists {} with (force)").format(Identifier(name)))

    def halt(self, how: Literal["fast", "immediate", "kill"] = "fast") -> None:
        """Stop the server during use, as an outage does; `resume` starts it at the same place."""
        self._hold.halt(HALTS[how])

    def resume(self) -> None:
        """Start a halted server again, and return when it accepts connections."""
        self._hold.start()
        wait_ready(self._hold, self._card, self._place)

    def close(self) -> None:
        """Stop holding the server. Without other holders, return when it has stopped."""
        if self._closed:
            return
        self._closed = True
        fallen = self._hold.is_gone()
        self._hold.leave()
        if fallen:
            self._clear_away()

    def _clear_away(self) -> None:
        """Do the last work of a killed supervisor, unless the folder has a new server by now."""
        shutil.rmtree(self._card.socket_folder, ignore_errors=True)
        if self._keep:
            return
        with self._place.turn():
            ours = self._place.read_card() in (None, self._card)
            life = self._place.take_life(QUIET_SECONDS_MAX) if ours else None
            if life is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
                os.close(life)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _execute(self, statement: psycopg.sql.Composed) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as conn:
            conn.execute(statement)


def _attach(place: ServerFolder) -> tuple[ServerHolder, Card] | None:
    card = place.read_card()
    hold = ServerHolder.on(card.control, card.nonce) if card else None
    return (hold, card) if hold and card else None


def _start(
    place: ServerFolder, settings: Mapping[str, str], *, fsync: bool, keep: bool
) -> tuple[ServerHolder, Card]:
    try:
        return start(place, settings, fsync=fsync, keep=keep)
    except BaseException:
        if not keep:
            shutil.rmtree(place.folder, ignore_errors=True)
        raise
