"""PostgreSQL refuses to run as root: root's servers run as another account; root's folders stay closed."""

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import faultline
from faultline.embedded import EmbeddedServer
from faultline.embedded.binaries import find_binaries
from faultline.embedded.cache import runnable
from faultline.embedded.os_account import OsAccount, account_for, check_named
from faultline.errors import ServerFailed
from tests.embedded.others import HOLDER, OtherProcess, answers, is_gone

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run as another account")


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder of root's that no other account may enter."""
    with tempfile.TemporaryDirectory(prefix="faultline closed-") as path:
        yield Path(path)


@as_root
def test_a_folder_behind_a_closed_door_serves_and_the_door_stays_closed(closed):
    before = closed.stat()

    with EmbeddedServer.open(closed / "in here" / "server") as server:
        assert answers(server.dsn())
        assert answers(server.tcp_dsn())
        owner = (server.folder / "pg").stat().st_uid
        server.halt("kill")
        server.resume()

    after = closed.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    assert pwd.getpwuid(owner).pw_name in ("postgres", "nobody")
    assert (closed / "in here" / "server" / "password").stat().st_uid == 0


@as_root
def test_binaries_behind_a_closed_door_are_copied_with_their_libraries(closed, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "faultline.embedded.cache.ROOTS_CACHE", Path(tempfile.mkdtemp(prefix="faultline-cache-"))
    )
    cache = Path(sys.modules["faultline.embedded.cache"].ROOTS_CACHE)
    cache.chmod(0o755)
    try:
        found = find_binaries()
        install = found.folder.parent
        libraries = install.parent.with_name(install.parent.name + ".libs")
        shutil.copytree(install, closed / install.parent.name / install.name, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, closed / libraries.name)
        (closed / install.parent.name / install.name / "bin" / "postgres").chmod(0o700)
        monkeypatch.setenv("FAULTLINE_PG_BIN", str(closed / install.parent.name / install.name / "bin"))

        with EmbeddedServer.open() as server:
            assert cache in server.binaries.parents
            assert answers(server.dsn())
    finally:
        shutil.rmtree(cache)


@as_root
def test_root_serves_a_folder_of_another_user_as_that_user(tmp_path):
    unprivileged = pwd.getpwnam("nobody")
    data = tmp_path / "pg"
    data.mkdir()
    os.chown(data, unprivileged.pw_uid, unprivileged.pw_gid)

    assert account_for(data) == OsAccount(unprivileged.pw_uid, unprivileged.pw_gid)


def test_a_user_without_a_name_is_told_what_initdb_would_ask_for():
    with pytest.raises(ServerFailed, match="user id 54321 has no name on this machine"):
        check_named(OsAccount(54321, 54321))


def test_binaries_the_account_cannot_run_and_nowhere_to_copy_them_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(OsAccount, "can_run", lambda account, program: False)
    monkeypatch.setattr("faultline.embedded.cache.cache_folder", lambda: None)

    with pytest.raises(ServerFailed, match="set FAULTLINE_PG_BIN to binaries it can run"):
        runnable(find_binaries(), OsAccount(os.geteuid(), os.getegid()))


@as_root
def test_an_ordinary_user_without_a_home_has_a_server_too():
    unprivileged = pwd.getpwnam("nobody")
    python = a_python_for(unprivileged)
    folder = Path(tempfile.mkdtemp(prefix="faultline-ordinary-"))
    os.chown(folder, unprivileged.pw_uid, unprivileged.pw_gid)
    try:
        other = OtherProcess(
            folder / "server", python, cwd=folder, env=ordinary_environment(), **become(unprivileged)
        )
        told = other.told()
        assert Path(f"/proc/{told['pid']}").stat().st_uid == unprivileged.pw_uid
        other.leave()
        assert other.process.returncode == 0
        assert is_gone(folder / "server")
    finally:
        shutil.rmtree(folder)


def a_python_for(user: pwd.struct_passwd) -> str:
    """An interpreter that the user can run with our packages: root's own often lies in root's home."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            command = [python, "-c", f"import faultline.embedded; open({str(HOLDER)!r})"]
            subprocess.run(
                command, check=True, cwd="/", env=ordinary_environment(), capture_output=True, **become(user)
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("no interpreter that an ordinary user can run with these packages")


def ordinary_environment() -> dict[str, str]:
    source = Path(faultline.__file__).parent.parent
    return {
        "PYTHONPATH": f"{source}:{sysconfig.get_path('purelib')}",
        "PATH": os.defpath,
        "HOME": "/nonexistent",
    }


def become(user: pwd.struct_passwd) -> dict[str, Any]:
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
