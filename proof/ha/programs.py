"""The programs of the lab: fetched where they are missing, each where the servers' account can run it."""

import hashlib
import itertools
import os
import pwd
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from faultline.embedded.binaries import find_binaries
from faultline.embedded.cache import kept, runnable
from faultline.embedded.os_account import OsAccount, account_for
from scripts import tools

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
"""Of this checkout: the lab tests the code beside it, in any environment."""

LOCK: Final = ROOT / "requirements/ha.lock"
FETCHED: Final = ("etcd", "haproxy", "pgbouncer", "postgres15")
NEWEST, OLDEST = 18, 15
AS_SOURCE: Final = ("python-etcd", "ydiff")
BUILDER: Final = "setuptools"
"""The two have no wheels: they are built with this, from the same lock, and nothing else."""

PYTHONS: Final = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")


class CannotRun(Exception):
    """Something the lab needs is not here and could not be fetched."""


@dataclass(frozen=True)
class Programs:
    """Where everything is, and the account that runs servers: PostgreSQL refuses to be root."""

    account: OsAccount
    etcd: str
    haproxy: str
    pgbouncer: str
    python: Path
    """Of the environment that has Patroni."""
    postgres: dict[int, Path]
    """A folder of programs for each major version."""

    @property
    def user(self) -> str:
        return pwd.getpwuid(self.account.uid).pw_name


def obtain() -> Programs:
    """Find or fetch everything; the error names what is missing."""
    account = account_for(Path("/nonexistent"))
    if missing := tools.main(FETCHED, again=True):
        raise CannotRun(f"missing: {', '.join(missing)}; the lines above say why")
    found = {name: str(tools.find(name)) for name in FETCHED}
    newest = runnable(find_binaries(), account)
    if newest.major < NEWEST:
        raise CannotRun(f"PostgreSQL {NEWEST} is needed, {newest.folder} is {newest.version}")
    return Programs(
        account, found["etcd"], found["haproxy"], found["pgbouncer"], patroni(account),
        {NEWEST: newest.folder, OLDEST: Path(found["postgres15"]).parent},
    )  # fmt: skip


def patroni(account: OsAccount) -> Path:
    """The Python of an environment with exactly what requirements/ha.lock names, made once."""
    base = next((python for python in PYTHONS if account.can_run(str(Path(python).resolve()))), None)
    if base is None:
        raise CannotRun(f"user id {account.uid} can run none of {', '.join(PYTHONS)}")
    digest = hashlib.sha256(LOCK.read_bytes() + base.encode()).hexdigest()
    home = kept(f"patroni-{digest[:12]}", lambda draft: _make(draft, str(Path(base).resolve())))
    if home is None:
        raise CannotRun("there is no cache folder to put Patroni into")
    return home / "bin/python"


def _make(draft: Path, base: str) -> None:
    print(f"faultline: installing {LOCK.relative_to(ROOT)} into a cache, once", file=sys.stderr, flush=True)
    draft.chmod(0o755)
    _run(base, "-m", "venv", "--copies", str(draft))
    pip = (str(draft / "bin/python"), "-m", "pip", "-qq", "--disable-pip-version-check", "install")
    hashed = (*pip, "--require-hashes", "--no-deps", "--only-binary=:all:")
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as first:
        first.write(_pinned(BUILDER))
        first.flush()
        _run(*hashed, "-r", first.name)
    _run(*hashed, f"--no-binary={','.join(AS_SOURCE)}", "--no-build-isolation", "-r", str(LOCK))


def _pinned(name: str) -> str:
    """The lines of the lock that pin one package."""
    lines = LOCK.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"{name}=="))
    rest = itertools.takewhile(lambda line: line.startswith("    --hash"), lines[first + 1 :])
    return "\n".join([lines[first], *rest]) + "\n"


def _run(*command: str) -> None:
    with tempfile.TemporaryFile("w+") as said:
        if subprocess.run(command, stdout=said, stderr=said, cwd="/", check=False).returncode:
            said.seek(0)
            raise CannotRun(f"{' '.join(command[:4])}: {said.read()[-600:].strip()}")
