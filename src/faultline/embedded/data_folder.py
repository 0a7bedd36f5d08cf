"""An initialised data folder: by `initdb`, or as a copy of an initialised one."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from faultline.embedded.binaries import Binaries
from faultline.embedded.cache import kept
from faultline.embedded.os_account import OsAccount, check_named, reachable
from faultline.embedded.server_folder import ServerFolder
from faultline.errors import ServerFailed

SUPERUSER = "postgres"
INITDB_OPTIONS = ("--auth=trust", "--encoding=UTF8", "--data-checksums", "--no-instructions")

# The socket is in a folder that only the server's account and we may enter. TCP is open to all local users.
HBA = """\
local  all,replication  all                trust
host   all,replication  all  127.0.0.1/32  scram-sha-256
"""


def ensure_data(place: ServerFolder, binaries: Binaries, account: OsAccount, *, keep: bool) -> None:
    """Make the data folder unless it is there; complain if another release made it.

    It appears under its name only when it is whole, so a kill in between leaves nothing incomplete.
    """
    if place.data.is_dir():
        _check_release(place.data, binaries)
        return
    shutil.rmtree(place.draft, ignore_errors=True)
    place.draft.mkdir(mode=0o700)
    account.own(place.draft)
    _fill(place.draft, binaries, account, keep=keep)
    place.draft.rename(place.data)


def _check_release(data: Path, binaries: Binaries) -> None:
    made_by = (data / "PG_VERSION").read_text().strip()
    if made_by != str(binaries.major):
        raise ServerFailed(
            f"{data} was made by PostgreSQL {made_by}, but {binaries.folder} is {binaries.version}: "
            "set FAULTLINE_PG_BIN to the older binaries, or delete the folder to begin again"
        )


def _fill(draft: Path, binaries: Binaries, account: OsAccount, *, keep: bool) -> None:
    # Data worth keeping gets an initdb of its own. Copies share one system identifier, by which a queue
    # notices that its data came from another server, and that its tokens have to begin higher.
    if keep:
        initialise(draft, binaries, account)
        return
    recipe = hashlib.sha256(repr((INITDB_OPTIONS, locale_options(binaries), HBA)).encode()).hexdigest()
    name = f"data-{binaries.version}-{account.uid}-{recipe[:8]}"
    ready = kept(name, lambda folder: _initialise_for_copying(folder, binaries, account))
    if ready is None:
        initialise(draft, binaries, account, "--no-sync")
    else:
        told = subprocess.run(
            ["cp", "-pR", f"{ready}/.", str(draft)], capture_output=True, text=True, check=False
        )
        if told.returncode:
            raise ServerFailed(f"{ready} could not be copied to {draft}: {last_words(told.stderr)}")


def _initialise_for_copying(folder: Path, binaries: Binaries, account: OsAccount) -> None:
    account.own(folder)
    initialise(folder, binaries, account, "--no-sync")


def initialise(data: Path, binaries: Binaries, account: OsAccount, *options: str) -> None:
    """Run `initdb` on an empty folder and set who may connect."""
    check_named(account)
    with reachable(data, account) as (name, handles):
        command = [binaries.program("initdb"), "-D", name, "-U", SUPERUSER, *INITDB_OPTIONS]
        told = subprocess.run(
            [*command, *locale_options(binaries), *options],
            cwd="/",
            env=server_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            pass_fds=handles,
            **account.spawn,
        )
    if told.returncode:
        raise ServerFailed(f"initdb failed in {data}: {last_words(told.stderr)}")
    (data / "pg_hba.conf").write_text(HBA)


def locale_options(binaries: Binaries) -> list[str]:
    """The same order of strings on every machine, whatever its locale, installed or broken."""
    if binaries.major >= 17:
        return ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    return ["--locale=C"]


def server_environment() -> dict[str, str]:
    """Our environment without the variables that PostgreSQL's programs would read."""
    silent = ("PG", "LC_", "LANG", "TZ")
    kept_names = {name: value for name, value in os.environ.items() if not name.startswith(silent)}
    return {**kept_names, "LC_ALL": "C"}


def last_words(log: str, lines: int = 4) -> str:
    """The last lines of a log on one line, for an error message."""
    words = [line.strip() for line in log.splitlines() if line.strip()]
    return " | ".join(words[-lines:]) or "it said nothing"
