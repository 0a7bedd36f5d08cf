"""Fetch the programs that tests use and pip cannot bring: PgBouncer, promtool, Chromium and the like.

Usage: python3 scripts/tools.py [--again] [--strict] [--where] [NAME...]. Debian's packages are downloaded and
unpacked into a cache of their own. Nothing is installed on the machine, no service is started, root is not
needed, and apt's locks are left alone: on a machine that has just booted they are often held. Where a program
cannot be had, one line says so and how to get it, and the tests that need it are skipped. The exit code is 0
all the same, unless --strict was said.
"""

import argparse
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

UPDATE_SECONDS_MAX = 90
DOWNLOAD_SECONDS_MAX = 600
UNPACK_SECONDS_MAX = 300
TRIAL_SECONDS_MAX = 60
FAILURE_KEPT_SECONDS = 3600
"""A machine without a network is not asked again at every `make test`; `make tools` always asks."""


class Tool(NamedTuple):
    """A program, the package that has it, and the words that make it prove that it runs."""

    name: str
    package: str
    program: str
    trial: tuple[str, ...] = ("--version",)


POSTGRES = "usr/lib/postgresql/15/bin"
BROWSER_TRIAL = ("--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank")
TOOLS = {
    tool.name: tool
    for tool in (
        Tool("pgbouncer", "pgbouncer", "usr/sbin/pgbouncer"),
        Tool("promtool", "prometheus", "usr/bin/promtool"),
        Tool("prometheus", "prometheus", "usr/bin/prometheus"),
        Tool("chromium", "chromium", "usr/lib/chromium/chromium", BROWSER_TRIAL),
        Tool("psql", "postgresql-client", "usr/lib/postgresql/*/bin/psql"),
        Tool("openssl", "openssl", "usr/bin/openssl", ("version",)),
        Tool("kubectl", "kubernetes-client", "usr/bin/kubectl", ("version", "--client")),
        Tool("systemd-analyze", "systemd", "usr/bin/systemd-analyze"),
        Tool("postgres15", "postgresql-15", f"{POSTGRES}/postgres"),
        Tool("etcd", "etcd-server", "usr/bin/etcd"),
        Tool("haproxy", "haproxy", "usr/sbin/haproxy", ("-v",)),
    )
}
ON_REQUEST = ("postgres15", "etcd", "haproxy")
"""What CI's oldest PostgreSQL and `make ha` ask for by name."""

OF_THE_TESTS = tuple(name for name in TOOLS if name not in ON_REQUEST)
LIBRARIES = ("usr/lib/{0}", "lib/{0}", "usr/lib/{0}/*", "lib/systemd", "usr/lib/systemd")
OPTIONS = (
    "Debug::NoLocking=1",
    "APT::Sandbox::User=root",
    "APT::Install-Recommends=0",
    "Acquire::Retries=1",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
)
NEVER_SHADOWED = "libc6_"
"""The C library is loaded by the machine's own loader, which fits no other."""


def main(names: Iterable[str], *, again: bool = False) -> list[str]:
    """Fetch what is missing; give back the names of what is missing still."""
    if not missing(names):
        return []
    try:
        place().mkdir(parents=True, exist_ok=True)
        with (place() / "lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            _fetch_missing(names, again=again)
    except OSError as error:
        _say(f"{place()}: {error.strerror}")
    return missing(names)


def missing(names: Iterable[str]) -> list[str]:
    return [name for name in names if find(name) is None]


def find(name: str) -> str | None:
    """Where a program is: on the machine, or in the cache."""
    if name == "postgres15":
        return shutil.which("postgres", path=f"/{POSTGRES}{os.pathsep}{_folder(TOOLS[name])}")
    places = [os.environ.get("PATH", os.defpath), "/usr/sbin", str(_folder(TOOLS[name]))]
    return shutil.which(name, path=os.pathsep.join(places))


def add_to_path() -> None:
    """After this, `shutil.which` finds what was fetched. What the machine has of its own comes first."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    fetched = str(place() / "bin")
    if fetched not in entries:
        os.environ["PATH"] = os.pathsep.join([*entries, fetched])


def place() -> Path:
    """The cache: of the system's release, since libraries of one release do not fit another.

    As root it is a folder that every user may read: servers that root starts run as another user.
    """
    release = platform.freedesktop_os_release() if sys.platform == "linux" else {}
    name = "-".join([release.get("ID", "other"), release.get("VERSION_ID", "0"), platform.machine()])
    if chosen := os.environ.get("FAULTLINE_TOOLS"):
        return Path(chosen) / name
    if os.geteuid() == 0:
        return Path("/var/cache/faultline/tools") / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "faultline/tools" / name


def why_not(name: str) -> str:
    """The reason of a skip: what is missing, and how to get it."""
    package = TOOLS[name].package
    return f"{name} is missing, so its tests are skipped: `make tools` fetches it (Debian's {package})"


def _fetch_missing(names: Iterable[str], *, again: bool) -> None:
    for name in missing(names):  # asked again: another process may have fetched it while we waited
        failed = place() / f"failed-{name}"
        if not again and failed.exists() and time.time() - failed.stat().st_mtime < FAILURE_KEPT_SECONDS:
            continue
        why = _fetch(TOOLS[name])
        if why:
            failed.write_text(why)
            _say(f"could not fetch {name}: {why}")


def _fetch(tool: Tool) -> str:
    """Download and unpack one program with what it needs, and try it: empty when it runs, else why not."""
    for needed in ("apt-get", "dpkg-deb"):
        if shutil.which(needed) is None:
            return f"there is no {needed} here"
    if _unpacked(tool) is None:
        _say(f"fetching {tool.name} (Debian's {tool.package}) into {place()}, once")
        with tempfile.TemporaryDirectory(dir=place()) as folder:
            if why := _download(tool.package, Path(folder)) or _unpack(Path(folder)):
                return why
    return _offer(tool)


def _unpacked(tool: Tool) -> Path | None:
    return next(iter(sorted((place() / "root").glob(tool.program))), None)


def _unpack(folder: Path) -> str:
    for archive in sorted(folder.glob("archives/*.deb")):
        if not archive.name.startswith(NEVER_SHADOWED):
            why = _run(["dpkg-deb", "-x", str(archive), str(place() / "root")], UNPACK_SECONDS_MAX)
            if why:
                return why
    return ""


def _download(package: str, folder: Path) -> str:
    lists = place() / "lists"
    for made in (lists / "partial", folder / "archives/partial"):
        made.mkdir(parents=True, exist_ok=True)
    options = (*OPTIONS, f"Dir::State::lists={lists}", f"Dir::Cache={folder}")
    apt = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    if not _is_fresh(lists):
        _run([*apt, "update"], UPDATE_SECONDS_MAX)  # one source of several may fail; the download tells
        (lists / "partial").touch()
    why = _run([*apt, "--yes", "--download-only", "install", package], DOWNLOAD_SECONDS_MAX)
    if why:
        os.utime(lists / "partial", (0, 0))  # the lists may name what is no longer there
    return why


def _is_fresh(lists: Path) -> bool:
    age = time.time() - (lists / "partial").stat().st_mtime
    return any(lists.glob("*Packages*")) and age < FAILURE_KEPT_SECONDS


def _offer(tool: Tool) -> str:
    """Put programs into the cache that start the unpacked ones with their own libraries, if those run."""
    found = _unpacked(tool)
    if found is None:
        return f"Debian's {tool.package} has no {tool.program} here"
    names = found.parent.iterdir() if tool.name == "postgres15" else [found]
    draft = place() / f"draft-{tool.name}"
    draft.mkdir(exist_ok=True)
    for one in names:
        _write_program(draft / one.name, one)
    why = _run([str(draft / found.name), *tool.trial], TRIAL_SECONDS_MAX)
    for program in draft.iterdir() if not why else ():
        _folder(tool).mkdir(exist_ok=True)
        program.rename(_folder(tool) / program.name)
    shutil.rmtree(draft)
    return why


def _folder(tool: Tool) -> Path:
    return place() / ("bin15" if tool.name == "postgres15" else "bin")


def _write_program(file: Path, real: Path) -> None:
    root, triplet = place() / "root", f"{platform.machine()}-linux-gnu"
    folders = [one for pattern in LIBRARIES for one in sorted(root.glob(pattern.format(triplet)))]
    own = ":".join(str(one) for one in folders if any(one.glob("lib*.so*")))
    libraries = f"{own}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    file.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{real}" "$@"\n')
    file.chmod(0o755)


def _run(command: list[str], seconds_max: float) -> str:
    """Empty when it ran well, else the line that says why: apt's first error, or the last line of another."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command, env=quiet, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} took longer than {seconds_max:g} s"
    told = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
    return next((line for line in told if line.startswith("E: ")), told[-1]) if done.returncode else ""


def _say(line: str) -> None:
    print(f"faultline: {line}", file=sys.stderr, flush=True)


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="fetch the programs that tests use and pip cannot bring")
    parser.add_argument("names", nargs="*", metavar="NAME", help="without one, all that `make test` uses")
    parser.add_argument("--again", action="store_true", help="try again what failed within the last hour")
    parser.add_argument("--strict", action="store_true", help="exit 1 when something is missing still")
    parser.add_argument("--where", action="store_true", help="print the folder of each")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(TOOLS):
        parser.error(f"no such program: {', '.join(sorted(unknown))}; there are {', '.join(TOOLS)}")
    return asked


if __name__ == "__main__":
    asked = command_line()
    wanted = asked.names or OF_THE_TESTS
    left = main(wanted, again=asked.again)
    for name in left:
        _say(f"NOT HERE: {why_not(name)}")
    for name in wanted if asked.where else ():
        if program := find(name):
            print(Path(program).parent)
    sys.exit(bool(left) if asked.strict else 0)
