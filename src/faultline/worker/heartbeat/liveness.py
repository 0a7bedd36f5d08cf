"""Is the worker stopped? Asked by its pacemaker before each beat."""

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
CGROUPS_V2 = ("", "unified")
"""Where the second version is mounted: alone, or beside the first."""

FREEZING = ("FREEZING\n", "FROZEN\n")

STOPPED = "T"
TRACED = "t"
"""Held by a debugger or a tracer: for a moment at each system call, or for as long as a person thinks."""
GONE = ("Z", "X")


class ProcessStat(NamedTuple):
    """The state letter of a process, and the CPU it has used so far."""

    state: str
    cpu: str


class ProcessLiveness:
    """Watches one process: is it there, is it stopped?"""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._last: tuple[int, str] | None = None

    def alive(self) -> bool:
        """Our parent is still our parent: a pid may be another's by now, an orphan's parent cannot."""
        return os.getppid() == self.pid

    def beats(self, ticks: int) -> bool:
        """Whether to beat for it: unless it is stopped, by a signal, a debugger or a frozen cgroup.

        A loop that does not turn is no sign of that. A handler blocks it, and its neighbours in threads and
        processes are at work; whether the process sleeps or waits for a disk, it goes on by itself. What
        never goes on loses its jobs at their deadlines.
        """
        vital = read_process_stat(self.pid)
        before, self._last = self._last, (ticks, vital.cpu)
        if vital.state in GONE or vital.state == STOPPED:
            return False
        if before != self._last:
            return True  # it has moved since the last look, between two stops of a tracer too
        return vital.state != TRACED and not in_frozen_cgroup(self.pid)


def asleep() -> float:
    """Seconds for which this machine was suspended, which its monotonic clock has not counted; else 0."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return 0.0 if boot_time is None else time.clock_gettime(boot_time) - time.monotonic()


def read_process_stat(pid: int) -> ProcessStat:
    """From /proc where there is one, else from ps."""
    if PROC.joinpath("self/stat").exists():
        return _from_proc(pid)
    said = subprocess.run(["ps", "-o", "state=,time=", "-p", str(pid)], capture_output=True, text=True).stdout
    state, _, cpu = said.strip().partition(" ")
    return ProcessStat(state[:1] or "X", cpu.strip())


def _from_proc(pid: int) -> ProcessStat:
    fields = stat_of(pid)
    return ProcessStat("X", "") if fields is None else ProcessStat(fields[0], f"{fields[11]}+{fields[12]}")


def stat_of(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name, from the state on; None when there is no such process."""
    try:
        # The name stands in parentheses, and may itself hold spaces and parentheses.
        return PROC.joinpath(str(pid), "stat").read_bytes().rpartition(b")")[2].decode().split()
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or while it was read
        return None


def in_frozen_cgroup(pid: int) -> bool:
    """Whether the process is frozen by its cgroup, as a paused container is; False where none can be read.

    The state letter does not tell: S under the second version of cgroups, D under the first.
    """
    with contextlib.suppress(OSError):
        for line in PROC.joinpath(str(pid), "cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if _frozen(number, controllers.split(","), path.lstrip("/")):
                return True
    return False


def _frozen(number: str, controllers: list[str], path: str) -> bool:
    if number == "0":
        events = (CGROUPS / root / path / "cgroup.events" for root in CGROUPS_V2)
        return any("frozen 1" in _text(file).splitlines() for file in events)
    return "freezer" in controllers and _text(CGROUPS / "freezer" / path / "freezer.state") in FREEZING


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
