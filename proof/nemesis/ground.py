"""The server the storm goes over: an embedded PostgreSQL of its own, its data where a disk can be made full.

`lacks` names what this machine does not allow, and the report shows it: a missing fault proves nothing.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier, Literal

from faultline.embedded import EmbeddedServer
from faultline.embedded.binaries import SETTING, find_binaries
from faultline.embedded.cache import runnable
from faultline.embedded.os_account import account_for
from faultline.store import calls, limit_sync
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from faultline.worker.schedule_sync import NAMELESS
from proof.nemesis.app import app
from proof.nemesis.plan import LEASE_SECONDS

DATABASE: Final = "storm"
CLONE_NEWNS: Final = 0x00020000
DISK_MEBIBYTES: Final = 512
LIBFAKETIME: Final = ("lib/*/faketime/libfaketime.so.1", "lib*/faketime/libfaketime.so.1")
SETTINGS: Final = {
    "max_connections": "300",
    "max_wal_size": "256MB",
    "log_min_messages": "fatal",
    # A connection that ends without a word to the server must not hold a row for long.
    "idle_in_transaction_session_timeout": "20s",
}

# Beside the queue, in the same database: the user's rows, a clock that can be moved, and what the checker of
# limits reads: when an entry was written, in the order of tokens, and when a job was given a slot, by a clock
# that no fault moves.
SCHEMA: Final = """
create schema storm;
create table storm.effects (job_id bigint not null, token bigint not null, effect text not null,
                            at timestamptz not null default clock_timestamp());
create table storm.orders (request bigint primary key);
create sequence storm.clock minvalue -1000000 start 0;
select setval('storm.clock', 0);

alter table faultline.ledger
  add column written bigint default faultline.epoch() + nextval('faultline.tokens');

create table storm.grants (limit_id int not null, job_id bigint not null, granted_by xid8 not null,
                           waited float8 not null, up float8 not null, at timestamptz not null);
create function storm.note_grant() returns trigger language plpgsql security definer as $$
begin
  insert into storm.grants
  values (new.limit_id, new.id, pg_current_xact_id(),
          greatest(0, extract(epoch from clock_timestamp() - transaction_timestamp())),
          split_part(pg_read_file('/proc/uptime', 0, 60), ' ', 1)::float8, faultline.now());
  return null;
end;
$$;
create trigger noted_by_the_storm after insert on faultline.active
  for each row when (new.limit_id is not null) execute function storm.note_grant();
"""
MOVABLE_NOW: Final = """
create or replace function faultline.now() returns timestamptz language sql volatile as
$$ select clock_timestamp() + (select last_value from storm.clock) * interval '1 millisecond' $$
"""


class Reachable(Protocol):
    """Whatever server a phase ends on, past every proxy."""

    def connect(self, **options: Any) -> psycopg.Connection[Any]: ...


@dataclass
class NemesisDatabase:
    """A running server with a migrated database in it."""

    server: EmbeddedServer
    disk: Path | None = None
    clock: Path | None = None
    """The file that libfaketime reads its offset from; without it `faultline.now()` is moved instead."""
    lacks: dict[str, str] = field(default_factory=dict)

    @property
    def dsn(self) -> str:
        return self.server.dsn(DATABASE)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A connection of our own, past every proxy."""
        dsn = make_conninfo(self.dsn, application_name="nemesis", connect_timeout=3)
        return psycopg.connect(dsn, autocommit=True, **options)

    def fill_disk(self, full: bool) -> None:
        """Leave no page free where the data lies, or give it all back."""
        assert self.disk is not None
        size = f"{DISK_MEBIBYTES}m"
        if full:
            found = os.statvfs(self.disk)
            size = str((found.f_blocks - found.f_bfree + 1) * found.f_frsize)
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.disk)], check=True)

    def bring_back(self) -> None:
        """Start the halted server again. A full disk is given room first, as an operator has to do:
        PostgreSQL replays its log or does not start."""
        if self.disk is not None:
            self.fill_disk(False)
        self.server.resume()

    def step_clock(self, by: timedelta) -> None:
        """Let the server's clock be so far off from now on."""
        if self.clock is not None:
            self.clock.write_text(f"{by.total_seconds():+.3f}\n")
            return
        with self.connect() as conn:
            conn.execute("select setval('storm.clock', %s)", [int(by.total_seconds() * 1000)])


@contextlib.contextmanager
def ground() -> Iterator[NemesisDatabase]:
    """A server for one run; everything of it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="faultline-nemesis-", dir="/tmp"))
    folder.chmod(0o711)
    lacks: dict[str, str] = {}
    try:
        disk = _small_disk(folder / "disk", lacks)
        with _faked_clock(folder / "clock", lacks) as clock, _server() as server:
            made = NemesisDatabase(server, disk, clock, lacks)
            _prepare(made)
            yield made
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["umount", str(folder / "disk")], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _server() -> Iterator[EmbeddedServer]:
    # fsync off: a stopped process loses nothing that it wrote; only a lost machine would.
    with EmbeddedServer.open(settings=SETTINGS, fsync=False) as server:
        yield server


def _small_disk(place: Path, lacks: dict[str, str]) -> Path | None:
    """A tmpfs that only this process and its children see; it goes with the last of them."""
    place.mkdir()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        lacks["disk-full"] = f"no mount namespace of our own ({os.strerror(ctypes.get_errno())})"
        return None
    try:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEBIBYTES}m,mode=711", "nemesis", str(place)]
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as refused:
        lacks["disk-full"] = f"a tmpfs cannot be mounted here ({refused})"
        return None
    return place


@contextlib.contextmanager
def _faked_clock(file: Path, lacks: dict[str, str]) -> Iterator[Path | None]:
    """Preload libfaketime into the server alone: workers' clocks decide nothing, and stay true."""
    named = os.environ.get("NEMESIS_LIBFAKETIME")
    found = (
        [named] if named else [str(path) for pattern in LIBFAKETIME for path in Path("/usr").glob(pattern)]
    )
    if not found:
        lacks["clock-step by libfaketime"] = "libfaketime is not installed; faultline.now() is moved instead"
        yield None
        return
    file.write_text("+0\n")
    file.chmod(0o644)
    before = os.environ.get(SETTING)
    os.environ[SETTING] = str(_binaries_with(found[0], file))
    try:
        yield file
    finally:
        os.environ.pop(SETTING)
        if before is not None:
            os.environ[SETTING] = before


def _binaries_with(library: str, file: Path) -> Path:
    """PostgreSQL's programs, with a `postgres` that has the library: in no other process may time jump."""
    real = runnable(find_binaries(), account_for(file.parent / "data")).folder
    folder = file.parent / "bin"
    folder.mkdir(mode=0o755)
    for program in real.iterdir():
        (folder / program.name).symlink_to(program)
    words = (
        f"LD_PRELOAD={library}", f"FAKETIME_TIMESTAMP_FILE={file}", "FAKETIME_NO_CACHE=1",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
    )  # fmt: skip
    (folder / "postgres").unlink()
    (folder / "postgres").write_text(f'#!/bin/sh\nexec env {" ".join(words)} {real}/postgres "$@"\n')
    (folder / "postgres").chmod(0o755)
    return folder


def _prepare(made: NemesisDatabase) -> None:
    with psycopg.connect(made.server.dsn(), autocommit=True) as conn:
        place = SQL("")
        if made.disk is not None:
            tables = made.disk / "tables"
            tables.mkdir()
            owner = Path(f"/proc/{made.server.pid}").stat()
            os.chown(tables, owner.st_uid, owner.st_gid)
            conn.execute(SQL("create tablespace small location {}").format(Literal(str(tables))))
            place = SQL("tablespace small")
        conn.execute(SQL("create database {} {}").format(Identifier(DATABASE), place))
    prepare(made.dsn)
    if made.clock is None:
        with made.connect() as conn:
            conn.execute(MOVABLE_NOW)


def prepare(dsn: str) -> None:
    """Migrate, set short leases, make the user's own tables, and declare limits and schedules."""
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        Store.run_in(conn, calls.configure(default_lease=timedelta(seconds=LEASE_SECONDS)))
        conn.execute(SCHEMA)
        # Before the first producer: what is enqueued before a limit is made comes under it only later.
        limit_sync.carry(limit_sync.declare(app.registry), lambda call: Store.run_in(conn, call))
        # Workers tell the same as they start; what a lossy failover takes of that they do not tell again.
        documents = [spec.document() for spec in app.registry.schedules.values()]
        Store.run_in(conn, calls.sync_schedules(NAMELESS, [], documents))
