"""Ways to find the processes of a drill, and to see them go."""

import os
import select
from pathlib import Path

MARK = "FAULTLINE_TEST_MARK"
LOOKS_MAX = 20


def pids_marked(mark: str) -> set[int]:
    """Every other process that was started with FAULTLINE_TEST_MARK set to this, and their children."""
    found = {
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and f"{MARK}={mark}".encode() in _environment(entry).split(b"\0")
    } - {os.getpid()}
    while more := {pid for pid, parent in _parents().items() if parent in found} - found:
        found |= more
    return found


def _environment(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""


def _parents() -> dict[int, int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return parents


def is_alive(pid: int) -> bool:
    """False for a process that is gone, and for a zombie that only waits to be collected."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def left_of(mark: str, seen: set[int]) -> set[int]:
    """Those of a mark's processes that do not end in time, and of those they had only just started."""
    for _ in range(LOOKS_MAX):
        if not (there := seen | pids_marked(mark)):
            return set()
        if late := still_there(there):
            return late
        seen = set()
    return pids_marked(mark)


def still_there(pids: set[int], within_seconds: float = 20.0) -> set[int]:
    """Those of the processes that have not ended in time; the kernel tells of each as it ends."""
    left = set()
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([handle], [], [], within_seconds)[0]:
                left.add(pid)
        finally:
            os.close(handle)
    return left
