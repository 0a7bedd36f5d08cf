"""A streaming standby of an embedded server: it can be cut off and promoted."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.embedded.os_account import OsAccount
from faultline.embedded.server_supervisor import die_with
from faultline.errors import ServerFailed

PATIENCE_SECONDS: Final = 30.0
LOOK_EVERY_SECONDS: Final = 0.01
PORT: Final = "5432"
"""Only a name inside its own socket folder: it listens nowhere else."""

_never = threading.Event()


@dataclass(frozen=True)
class StandbyServer:
    """A running standby, reached through a socket of its own."""

    folder: Path

    def dsn(self, database: str = "postgres") -> str:
        return make_conninfo(host=str(self.folder), port=PORT, user="postgres", dbname=database)

    def catch_up(self, primary: str) -> None:
        """Return when everything the primary has written has been replayed here."""
        with psycopg.connect(primary, autocommit=True) as conn:
            (written,) = conn.execute("select pg_current_wal_lsn()::text").fetchone() or ("",)
        self.wait_for(f"select pg_last_wal_replay_lsn() >= '{written}'::pg_lsn")

    def cut_off(self) -> None:
        """Cut it off from the primary: every later commit there is lost here."""
        with psycopg.connect(self.dsn(), autocommit=True) as conn:
            conn.execute("alter system set primary_conninfo = ''")
            conn.execute("select pg_reload_conf()")
        self.wait_for("select not exists (select from pg_stat_wal_receiver)")

    def promote(self) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as conn:
            conn.execute("select pg_promote(true, 30)")

    def wait_for(self, question: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        with psycopg.connect(self.dsn(), autocommit=True) as conn:
            while conn.execute(question.encode()).fetchone() != (True,):
                if time.monotonic() > until:
                    raise ServerFailed(
                        f"the standby did not come this far in {PATIENCE_SECONDS} s: {question}"
                    )
                _never.wait(LOOK_EVERY_SECONDS)


def can_stand_by(primary: EmbeddedServer) -> bool:
    """Whether the programs are there that make a standby."""
    return (primary.binaries / "pg_basebackup").exists()


@contextmanager
def a_standby_of(primary: EmbeddedServer, name: str = "standby") -> Iterator[StandbyServer]:
    """A standby of this server, gone when the block ends; `name` is what the primary knows it by."""
    folder = Path(tempfile.mkdtemp(prefix="faultline-standby-", dir="/tmp"))
    account = _account_of(primary)
    account.own(folder)
    try:
        with _running(primary, folder, account, name):
            yield StandbyServer(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account_of(primary: EmbeddedServer) -> OsAccount:
    """The account that the primary runs as; PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return OsAccount(os.geteuid(), os.getegid())
    owner = Path(f"/proc/{primary.pid}").stat()
    return OsAccount(owner.st_uid, owner.st_gid)


@contextmanager
def _running(primary: EmbeddedServer, folder: Path, account: OsAccount, name: str) -> Iterator[None]:
    data = folder / "data"
    subprocess.run(
        [
            primary.binaries / "pg_basebackup", "--dbname", primary.dsn(), "--pgdata", data,
            "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync",
        ],
        check=True, cwd="/", **account.spawn,
    )  # fmt: skip
    options = {
        "port": PORT,
        "unix_socket_directories": str(folder),
        "listen_addresses": "",
        "fsync": "off",
        "max_connections": "200",
        "cluster_name": name,
    }
    command = [str(primary.binaries / "postgres"), "-D", str(data)]
    command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd="/", stdout=log, stderr=log, preexec_fn=die_with(os.getpid()), **account.spawn
        )
    try:
        _wait_ready(server, folder)
        yield
    finally:
        server.terminate()  # "smart": it waits for every client, so no client may be connected
        try:
            server.wait(2)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGQUIT)
            server.wait(10)


def _wait_ready(server: "subprocess.Popen[bytes]", folder: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            psycopg.connect(StandbyServer(folder).dsn(), connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            _never.wait(LOOK_EVERY_SECONDS)
    raise ServerFailed(f"the standby did not start: {(folder / 'log').read_text()[-2000:]}")
