"""The server's account: our own, or a lesser one when we are root, as PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultline.errors import ServerFailed

# The first that exists is used. We make neither: a library should not add users to a machine.
ACCOUNTS_FOR_ROOT = ("postgres", "nobody")


@dataclass(frozen=True)
class OsAccount:
    """A user id and group id that programs of PostgreSQL are run with."""

    uid: int
    gid: int

    @property
    def is_us(self) -> bool:
        return self.uid == os.geteuid()

    @property
    def spawn(self) -> dict[str, Any]:
        """The arguments that make `subprocess` run as this account."""
        return {} if self.is_us else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give one file or folder to this account; never a parent, never a tree."""
        if not self.is_us:
            os.chown(path, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        return self.is_us or self._does("/bin/sh", "-c", 'cd "$0"', str(folder))

    def can_run(self, program: str) -> bool:
        return self.is_us or self._does(program, "--version")

    def _does(self, *command: str) -> bool:
        try:
            trial = subprocess.run(command, cwd="/", capture_output=True, check=False, **self.spawn)
        except PermissionError:
            return False
        return trial.returncode == 0


def account_for(data: Path) -> OsAccount:
    """The account for a data folder: its present owner, or the first of the list that exists."""
    if os.geteuid() != 0:
        return OsAccount(os.geteuid(), os.getegid())
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return OsAccount(owner.st_uid, owner.st_gid)
    for name in ACCOUNTS_FOR_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return OsAccount(entry.pw_uid, entry.pw_gid)
    names = " or ".join(repr(name) for name in ACCOUNTS_FOR_ROOT)
    raise ServerFailed(f"PostgreSQL does not run as root, and there is no user {names} to run it as")


def check_named(account: OsAccount) -> None:
    """`initdb` asks for its user's name, which a bare numeric user in a container does not have."""
    try:
        pwd.getpwuid(account.uid)
    except KeyError:
        raise ServerFailed(
            f"user id {account.uid} has no name on this machine, and initdb asks for one: "
            "add it to /etc/passwd, or set FAULTLINE_DSN to use a server of your own"
        ) from None


@contextmanager
def reachable(folder: Path, account: OsAccount) -> Iterator[tuple[str, Sequence[int]]]:
    """A name for a folder that the account can use, and the descriptors that its processes must inherit.

    Root's folders often lie where no other account may walk. No parent is opened to all for that: a process
    can enter a folder through a descriptor, whatever the rights of its parents.
    """
    if account.can_enter(folder):
        yield str(folder), ()
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not Path(f"/proc/self/fd/{handle}").exists():
            raise ServerFailed(
                f"PostgreSQL does not run as root, and user id {account.uid} may not enter {folder}: "
                "choose another folder"
            )
        yield f"/proc/self/fd/{handle}", (handle,)
    finally:
        os.close(handle)
