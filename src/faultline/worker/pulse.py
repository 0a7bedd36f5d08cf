"""Does the worker live? Asked by its pacemaker before each beat."""

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Vital(NamedTuple):
    """The state letter of a process, and the CPU it has used so far."""

    state: str
    cpu: str


class Pulse:
    """Watches one process: is it there, is it stopped, does it move?"""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._moved_at = time.monotonic()
        self._last: tuple[int, str] | None = None

    def alive(self) -> bool:
        """Our parent is still our parent: a pid may be somebody else's by now, an orphan's parent cannot."""
        return os.getppid() == self.pid

    def beats(self, ticks: int, lease: float) -> bool:
        """Whether to beat for it: not while it is stopped, nor when it has not moved for one lease.

        A handler that holds the interpreter's lock stops the loop but burns CPU: that is moving.
        """
        vital = read_vital(self.pid)
        if vital.state in ("T", "t", "Z", "X"):
            return False
        now = time.monotonic()
        if (ticks, vital.cpu) != self._last:
            self._last = (ticks, vital.cpu)
            self._moved_at = now
        return now - self._moved_at < lease


def read_vital(pid: int) -> Vital:
    """From /proc where there is one, else from ps."""
    if PROC.joinpath("self/stat").exists():
        return _from_proc(pid)
    said = subprocess.run(["ps", "-o", "state=,time=", "-p", str(pid)], capture_output=True, text=True).stdout
    state, _, cpu = said.strip().partition(" ")
    return Vital(state[:1] or "X", cpu.strip())


def _from_proc(pid: int) -> Vital:
    try:
        # After the name in parentheses, which may itself hold spaces and parentheses.
        fields = PROC.joinpath(str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or while it was read
        return Vital("X", "")
    return Vital(fields[0].decode(), f"{fields[11].decode()}+{fields[12].decode()}")
