"""A child as a process: spawned in a group of its own, killed with all it has started."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

KERNEL = Path("/proc/vmstat")


class ChildProcess:
    """One process, and our end of the line to it.

    Spawned, never forked: a worker has threads, connections and a loop, and a copy of those is of no use.
    """

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = start_child(theirs.fileno())
            except BaseException:
                self.line.close()
                raise
        self.pid = self._process.pid
        self._oom_kills = oom_kills()

    @property
    def exit_code(self) -> int | None:
        """None as long as it is there; below zero, the signal that ended it."""
        return self._process.poll()

    @property
    def out_of_memory(self) -> bool:
        """Whether it was killed, and the kernel has killed for want of memory since it was started."""
        return self.exit_code == -signal.SIGKILL and oom_kills() > self._oom_kills

    def kill(self) -> None:
        """End it and all it has started, now."""
        # A group keeps its number for as long as a process is in it, so this cannot meet another group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def gone_within(self, seconds: float) -> bool:
        """Wait for its end; False if it is still there."""
        give_up_at = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < give_up_at:  # noqa: ASYNC110 - no event comes
            await asyncio.sleep(0.005)
        return self.exit_code is not None


def start_child(fd: int) -> "subprocess.Popen[bytes]":
    """Start one, which hears the rest over the line with this number."""
    return subprocess.Popen(
        [sys.executable, "-m", "faultline.worker.processes.child_main", str(fd)],
        stdin=subprocess.DEVNULL,
        pass_fds=[fd],
        # A group of its own: the handler's own processes are killed with it, and Ctrl-C at a terminal
        # reaches the worker alone.
        start_new_session=True,
    )


def described(exit_code: int, out_of_memory: bool = False) -> str:
    """How a process ended, in words.

    >>> described(7), described(-11)
    ('ended with exit code 7', 'was killed by SIGSEGV')
    """
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    hint = "; the kernel does that when memory runs out" if -exit_code == signal.SIGKILL else ""
    if out_of_memory:
        hint = ", when the kernel had no memory left"
    return f"was killed by {_signal_name(-exit_code)}{hint}"


def signature(exit_code: int, out_of_memory: bool = False) -> str:
    """The same in a word or two: what crashes of one kind have in common.

    >>> signature(7), signature(-11), signature(-9, out_of_memory=True)
    ('exit code 7', 'SIGSEGV', 'out of memory (SIGKILL)')
    """
    if exit_code >= 0:
        return f"exit code {exit_code}"
    name = _signal_name(-exit_code)
    return f"out of memory ({name})" if out_of_memory else name


def oom_kills() -> int:
    """How often the kernel has killed a process for want of memory; 0 where it does not tell."""
    with contextlib.suppress(OSError, ValueError):
        for line in KERNEL.read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
