"""Start a server with its supervisor, and wait until it answers."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.embedded import server_supervisor
from faultline.embedded.binaries import Binaries, find_binaries
from faultline.embedded.cache import runnable
from faultline.embedded.data_folder import SUPERUSER, ensure_data, last_words, server_environment
from faultline.embedded.holder import ServerHolder
from faultline.embedded.orphans import end_orphans
from faultline.embedded.os_account import OsAccount, account_for, reachable
from faultline.embedded.server_folder import Card, ServerFolder
from faultline.errors import ServerFailed

READY_SECONDS_MAX = 120.0  # after a crash a server replays its log first
QUIET_SECONDS_MAX = 5.0
POLL_SECONDS = 0.01
PORT_TRIES_MAX = 5
PORTS_OF_FOLDERS = range(20_000, 30_000)
LOG_BYTES_MAX = 4_000_000

# The kernel's limit for a socket's path is 104 bytes on macOS and 108 on Linux, with its closing zero.
SOCKET_PATH_BYTES_MAX = 103

DEFAULTS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "wal_level": "replica",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
UNSAFE_AND_FAST = {"fsync": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class LaunchPlan:
    """The decisions made before a server is started."""

    place: ServerFolder
    binaries: Binaries
    account: OsAccount
    settings: Mapping[str, str]
    keep: bool


def start(
    place: ServerFolder, settings: Mapping[str, str], *, fsync: bool, keep: bool
) -> tuple[ServerHolder, Card]:
    """Start a server in a folder without one. The caller holds the folder's lock."""
    with _after_the_last_one(place) as life:
        _sweep(place)
        account = account_for(place.data)
        binaries = runnable(find_binaries(), account)
        ensure_data(place, binaries, account, keep=keep)
        chosen = {**DEFAULTS, **({} if fsync else UNSAFE_AND_FAST), **settings}
        hold, card = _launch_on_a_free_port(LaunchPlan(place, binaries, account, chosen, keep), life)
    with _dropped_on_error(hold):
        if keep and place.read_port() is None:
            place.write_port(card.port)  # a port in use today may be free tomorrow: the first choice stays
        _set_password(place, card)
        place.write_card(card)
    return hold, card


@contextmanager
def _after_the_last_one(place: ServerFolder) -> Iterator[int]:
    """Wait for the end of an earlier server, and force it if it takes long; then the folder is ours."""
    life = place.take_life(QUIET_SECONDS_MAX)
    for way in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if life is None:
            orphans = end_orphans(place.data, way)
            life = place.take_life(QUIET_SECONDS_MAX)
    if life is None:
        raise ServerFailed(f"an earlier server in {place.folder} would not end (its processes: {orphans})")
    try:
        yield life
    finally:
        os.close(life)


@contextmanager
def _dropped_on_error(hold: ServerHolder) -> Iterator[None]:
    try:
        yield
    except BaseException:
        hold.drop()
        raise


def _sweep(place: ServerFolder) -> None:
    """Clear the files of a killed server. No other process is alive here, so none of them is in use."""
    if stale := place.read_card():
        shutil.rmtree(stale.socket_folder, ignore_errors=True)
    place.drop_card()
    # PostgreSQL takes the process id in this file for a running server, if any process has that id by now.
    (place.data / "postmaster.pid").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        if place.log.stat().st_size > LOG_BYTES_MAX:
            place.log.replace(place.log.with_name("log.old"))


def _launch_on_a_free_port(plan: LaunchPlan, life: int) -> tuple[ServerHolder, Card]:
    wanted = _wanted_port(plan.place) if plan.keep else None
    for attempt in range(PORT_TRIES_MAX):
        card = _new_card(plan, wanted if attempt == 0 else None)
        hold = _launch(plan, card, life)
        try:
            with _dropped_on_error(hold):
                wait_ready(hold, card, plan.place)
        except ServerFailed as error:
            # Between our check of a port and the server's start, another process may have taken it.
            if "could not create any TCP/IP sockets" not in str(error):
                raise
        else:
            return hold, card
    raise ServerFailed(f"no free TCP port for PostgreSQL was found in {PORT_TRIES_MAX} tries")


def _new_card(plan: LaunchPlan, wanted: int | None) -> Card:
    return Card(
        nonce=secrets.token_hex(16),
        socket_folder=_socket_folder(plan.account),
        port=wanted if wanted is not None and _is_free(wanted) else _free_port(),
        version=plan.binaries.version,
        binaries=str(plan.binaries.folder),
    )


def _wanted_port(place: ServerFolder) -> int:
    """The folder's earlier port, so that its address stays; or one computed from its name.

    Not from the system's range: those ports go to outgoing connections too, and would soon be in use.
    """
    name = zlib.crc32(os.fsencode(place.folder))
    return place.read_port() or PORTS_OF_FOLDERS[name % len(PORTS_OF_FOLDERS)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As PostgreSQL itself does: recently closed connections of the last server do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _socket_folder(account: OsAccount) -> str:
    """A short folder for the sockets: data folders may have longer paths than a socket can."""
    for base in ("/tmp", tempfile.gettempdir()):
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix="faultline-pg-", dir=base)
            if len(os.fsencode(f"{folder}/.s.PGSQL.65535")) > SOCKET_PATH_BYTES_MAX:
                raise ServerFailed(f"{base} is too long a path for sockets: set TMPDIR to a shorter one")
            account.own(Path(folder))
            return folder
    raise ServerFailed(f"neither /tmp nor {tempfile.gettempdir()} can hold the server's sockets")


def _launch(plan: LaunchPlan, card: Card, life: int) -> ServerHolder:
    place, account = plan.place, plan.account
    ours, theirs = socket.socketpair()
    hold = ServerHolder(ours)
    with _dropped_on_error(hold), theirs, reachable(place.data, account) as (data, handles):
        settings = {"port": str(card.port), "unix_socket_directories": card.socket_folder, **plan.settings}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        order = {
            "command": [plan.binaries.program("postgres"), "-D", data, *options],
            "environment": server_environment(),
            "account": account.spawn,
            "folder": str(place.folder),
            "log": str(place.log),
            "socket_folder": card.socket_folder,
            "nonce": card.nonce,
            "keep": plan.keep,
            "hold": theirs.fileno(),
            "life": life,
            "handles": list(handles),
        }
        # Isolated and without site: the caller's environment changes nothing in this process. In a session of
        # its own: a Ctrl-C in the terminal must not stop the database before its workers.
        with place.open_log() as log:
            subprocess.run(
                [sys.executable, "-I", "-S", server_supervisor.__file__],
                input=json.dumps(order).encode(),
                cwd="/",
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno(), life, *handles],
                start_new_session=True,
                check=False,
            )
    return hold


def wait_ready(hold: ServerHolder, card: Card, place: ServerFolder) -> None:
    """Return once the server accepts a connection; raise with its last lines if it ends before."""
    until = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < until:
        if hold.is_gone():
            raise ServerFailed(f"PostgreSQL did not start in {place.folder}: {_last_words(place, hold)}")
        with suppress(psycopg.OperationalError):
            psycopg.connect(socket_dsn(card, SUPERUSER), connect_timeout=10).close()
            return
        time.sleep(POLL_SECONDS)
    raise ServerFailed(f"PostgreSQL did not answer within {READY_SECONDS_MAX:.0f} s: {_last_words(place)}")


def _last_words(place: ServerFolder, hold: ServerHolder | None = None) -> str:
    """The end of the log, from its supervisor or from the file."""
    said = hold.gone["log"] if hold and hold.gone else ""
    with suppress(FileNotFoundError):
        said = said or place.log.read_text(errors="replace")
    return last_words(said)


def socket_dsn(card: Card, database: str) -> str:
    return make_conninfo(host=card.socket_folder, port=card.port, user=SUPERUSER, dbname=database)


def _set_password(place: ServerFolder, card: Card) -> None:
    """Give the superuser the password of the folder, or a new one if there is none yet.

    On every start: a kill between the two writes must not part them. Hashed here, so no log has it.
    """
    password = place.read_password() or secrets.token_urlsafe(24)
    place.write_password(password)
    with psycopg.connect(socket_dsn(card, SUPERUSER), autocommit=True) as conn:
        hashed = conn.pgconn.encrypt_password(password.encode(), SUPERUSER.encode(), b"scram-sha-256")
        conn.execute(SQL("alter role {} password {}").format(Identifier(SUPERUSER), hashed.decode()))
