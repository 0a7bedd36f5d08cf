"""The programs that pip cannot bring: fetched with the real apt, here from a repository made for the test.

promtool stands for all of them: no system has it in /usr/sbin, where programs are looked for beside PATH.
"""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import tools
from tests.deploy.shipped import ROOT

needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="there is no apt-get here")
CONTROL = "Package: prometheus\nVersion: 1.0\nArchitecture: all\nMaintainer: none\nDescription: none\n"


def fetch(cache: Path, *words: str, **changed: str) -> subprocess.CompletedProcess[str]:
    """`scripts/tools.py`, where the machine itself has nothing but apt and a shell."""
    bare = cache.parent / "bare"
    bare.mkdir(exist_ok=True)
    for name in ("apt-get", "dpkg", "dpkg-deb", "sh", "tar", "env"):
        if (found := shutil.which(name)) and not (bare / name).exists():
            (bare / name).symlink_to(found)
    here = {"PATH": str(bare), "HOME": str(cache.parent), "FAULTLINE_TOOLS": str(cache), **changed}
    program = [sys.executable, "scripts/tools.py", *words]
    return subprocess.run(program, cwd=ROOT, env=here, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Apt's configuration for a repository that holds one package: a promtool of two lines."""
    package, shelf = tmp_path / "package", tmp_path / "repository"
    for folder in (package / "DEBIAN", package / "usr/bin", shelf):
        folder.mkdir(parents=True)
    (package / "DEBIAN/control").write_text(CONTROL)
    program = package / "usr/bin/promtool"
    program.write_text("#!/bin/sh\necho promtool of the test, ${LD_LIBRARY_PATH:-without libraries}\n")
    program.chmod(0o755)
    archive = shelf / "prometheus_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--build", package, archive], check=True, capture_output=True)
    (shelf / "Packages").write_text(f"{CONTROL}{known(archive)}\n")
    return configuration(tmp_path, f"deb [trusted=yes] copy:{shelf} ./")


def known(archive: Path) -> str:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f"Filename: ./{archive.name}\nSize: {archive.stat().st_size}\nSHA256: {digest}\n"


def configuration(tmp_path: Path, source: str) -> Path:
    (tmp_path / "sources.list").write_text(f"{source}\n")
    file = tmp_path / "apt.conf"
    file.write_text(
        f'Dir::Etc::sourcelist "{tmp_path}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
        'Dir::State::status "/dev/null";\n'
    )
    return file


@needs_apt
def test_a_program_is_fetched_once_without_being_installed(repository, tmp_path):
    first = fetch(tmp_path / "cache", "--where", "promtool", APT_CONFIG=str(repository))
    again = fetch(tmp_path / "cache", "--where", "promtool", APT_CONFIG="/nowhere")

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert "fetching promtool" in first.stderr
    assert again.stderr == ""
    assert first.stdout == again.stdout
    program = Path(first.stdout.strip()) / "promtool"
    assert program.is_relative_to(tmp_path / "cache")
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert said.startswith("promtool of the test")


@needs_apt
def test_without_a_network_one_line_says_what_is_missing_and_nothing_fails(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nothing = configuration(tmp_path, f"deb [trusted=yes] http://127.0.0.1:{port} ./")

    first = fetch(tmp_path / "cache", "promtool", APT_CONFIG=str(nothing))
    again = fetch(tmp_path / "cache", "promtool", APT_CONFIG=str(nothing))
    strict = fetch(tmp_path / "cache", "--strict", "promtool", APT_CONFIG=str(nothing))

    assert (first.returncode, again.returncode, strict.returncode) == (0, 0, 1)
    assert "could not fetch promtool" in first.stderr
    missing = "NOT HERE: promtool is missing, so its tests are skipped: `make tools` fetches it"
    assert [missing in told.stderr for told in (first, again)] == [True, True]
    assert "fetching" not in again.stderr  # what failed a moment ago is not tried at every `make test`


@needs_apt
def test_what_failed_is_tried_again_when_asked(repository, tmp_path):
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    empty = configuration(nothing, "# no source at all")
    assert fetch(tmp_path / "cache", "--strict", "promtool", APT_CONFIG=str(empty)).returncode == 1

    told = fetch(tmp_path / "cache", "--strict", "--again", "promtool", APT_CONFIG=str(repository))

    assert told.returncode == 0, told.stderr


@needs_apt
def test_a_program_that_does_not_run_is_not_offered(repository, tmp_path):
    program = tmp_path / "package/usr/bin/promtool"
    program.write_text("#!/bin/sh\necho a library is missing >&2\nexit 127\n")
    archive = tmp_path / "repository/prometheus_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--build", tmp_path / "package", archive], check=True, capture_output=True)
    (tmp_path / "repository/Packages").write_text(f"{CONTROL}{known(archive)}\n")

    told = fetch(tmp_path / "cache", "--strict", "--where", "promtool", APT_CONFIG=str(repository))

    assert (told.returncode, told.stdout) == (1, "")
    assert "could not fetch promtool: a library is missing" in told.stderr


def test_a_machine_without_apt_is_told_so(tmp_path):
    told = fetch(tmp_path / "cache", "promtool", PATH=str(tmp_path))

    assert told.returncode == 0
    assert "there is no apt-get here" in told.stderr
    assert "NOT HERE: promtool" in told.stderr


def test_a_name_that_is_not_known_is_refused(tmp_path):
    told = fetch(tmp_path / "cache", "pgbouncr")

    assert told.returncode == 2
    assert "no such program: pgbouncr; there are pgbouncer, promtool" in told.stderr


def test_what_the_machine_has_of_its_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTLINE_TOOLS", str(tmp_path))
    monkeypatch.setenv("PATH", f"/usr/bin{os.pathsep}/bin")
    for folder in (tools.place() / "bin", tmp_path / "own"):
        folder.mkdir(parents=True)
        (folder / "promtool").write_text("#!/bin/sh\n")
        (folder / "promtool").chmod(0o755)

    tools.add_to_path()
    tools.add_to_path()
    assert os.environ["PATH"].split(os.pathsep) == ["/usr/bin", "/bin", str(tools.place() / "bin")]
    monkeypatch.setenv("PATH", f"{tmp_path}/own{os.pathsep}{os.environ['PATH']}")
    assert tools.find("promtool") == shutil.which("promtool") == str(tmp_path / "own/promtool")
