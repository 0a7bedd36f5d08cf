"""Processes of a server whose supervisor was killed: found by their working folder, and ended."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def end_orphans(data: Path, way: signal.Signals) -> list[int]:
    """Signal every server process that works in a data folder; answer their ids."""
    orphans = list(_working_in(data) if (PROC / "self/cwd").exists() else _started_on(data))
    for pid in orphans:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, way)
    return orphans


def _working_in(data: Path) -> Iterator[int]:
    """From the kernel (Linux): processes called postgres whose current folder is this one."""
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if (process / "comm").read_text().strip() == "postgres" and (process / "cwd").samefile(data):
                yield int(process.name)


def _started_on(data: Path) -> Iterator[int]:
    """From the command line (elsewhere): the server's first process, whose end ends the others."""
    listing = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        if f"postgres -D {data} " in command:
            yield int(pid)
