"""Processes of the lab: started by name, with a log each; ended by their own numbers."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from proof.ha import network
from proof.ha.programs import Programs

STOP_SECONDS_MAX: Final = 45.0
LOOK_EVERY_SECONDS: Final = 0.2
T = TypeVar("T")


class TookTooLong(Exception):
    """An expected event did not happen in time."""


def wait_for(question: Callable[[], T | None], seconds: float, what: str) -> T:
    """The first true answer; asked again and again, for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if answer := question():
            return answer
        time.sleep(LOOK_EVERY_SECONDS)
    raise TookTooLong(f"not within {seconds:g} s: {what}")


class Processes:
    """What runs for one folder: servers under their own account, workers under ours."""

    def __init__(self, folder: Path, programs: Programs) -> None:
        self.folder = folder
        self.programs = programs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self, name: str, command: Sequence[object], *, node: str = "") -> None:
        """Start a server as the account for servers; with a node, in its network namespace."""
        account = self.programs.account
        as_account = ["setpriv", "--reuid", account.uid, "--regid", account.gid, "--clear-groups"]
        words = [*(as_account if not account.is_us else ()), *command]
        if node:
            words = ["ip", "netns", "exec", network.namespace(node), *words]
        self.start(name, words, {"HOME": str(self.folder), "PYTHONUNBUFFERED": "1"}, cwd=Path("/"))

    def start(self, name: str, command: Sequence[object], env: Mapping[str, str], *, cwd: Path) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [str(word) for word in command], env={**os.environ, **env}, cwd=cwd,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def pid(self, name: str) -> int | None:
        running = self._running.get(name)
        return running.pid if running and running.poll() is None else None

    def kill(self, *names: str) -> None:
        signal_all((pid for name in names if (pid := self.pid(name))), signal.SIGKILL)
        for name in names:
            if running := self._running.pop(name, None):
                running.wait()

    def stop(self, *names: str) -> dict[str, int | str]:
        """Ask each to end and wait; its exit code, or words where it would not."""
        signal_all((pid for name in names if (pid := self.pid(name))), signal.SIGTERM)
        return {name: self._wait(self._running.pop(name)) for name in names if name in self._running}

    def _wait(self, running: subprocess.Popen[bytes]) -> int | str:
        try:
            return running.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            signal_all([running.pid, *children_of(running.pid)], signal.SIGKILL)
            running.wait()
            return f"would not stop in {STOP_SECONDS_MAX:g} s"

    def kill_all(self) -> None:
        family = [child for name in self._running if (pid := self.pid(name)) for child in children_of(pid)]
        signal_all(family, signal.SIGKILL)
        self.kill(*self._running)


def children_of(pid: int) -> list[int]:
    """Every process below this one."""
    found, left = [], [pid]
    while left:
        for task in Path(f"/proc/{left.pop()}/task").glob("*/children"):
            try:
                children = [int(child) for child in task.read_text().split()]
            except OSError:
                continue
            found += children
            left += children
    return found


def postmaster_of(data: Path) -> list[int]:
    """The processes of the PostgreSQL on a data folder: its postmaster and all below."""
    try:
        pid = int((data / "postmaster.pid").read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except (OSError, ValueError, IndexError):
        return []
    return [pid, *children_of(pid)] if str(data) in command else []


def is_open(address: str, port: int) -> bool:
    """Whether a server takes connections there."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
