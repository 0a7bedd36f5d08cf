"""The worker's side of its pacemaker: start it, replace it when it dies, end it."""

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
from typing import IO

from faultline import failpoints
from faultline.worker.backend import PacemakerSpec
from faultline.worker.heartbeat.liveness import read_process_stat
from faultline.worker.state import WorkerState

log = logging.getLogger("faultline.worker")

LOOK_EVERY = 0.2
STOPPED_LOOKS_MAX = 3
RESTART_EVERY_MAX = 5.0
START_WAIT = 5.0


class PacemakerProcess:
    """A child process that renews the leases in the lease table, and ends when our end of its pipe closes."""

    def __init__(self, state: WorkerState, spec: PacemakerSpec, worker: int) -> None:
        self.state = state
        self.spec = spec
        self.worker = worker
        self.process: subprocess.Popen[bytes] | None = None
        self.replaced = 0
        """How often one had to be replaced."""

    async def start(self) -> None:
        lease_table = self.state.lease_table
        fd = lease_table.file.fileno()
        self.process = start_pacemaker(self.spec.module, fd, lease_table.slots)
        # A stopped pacemaker reads nothing: its pipe may fill up, and must not block the worker.
        os.set_blocking(_pipe(self.process).fileno(), False)
        said = {
            **self.spec.address,
            "lease": self.state.config.lease_for.total_seconds(),
            "worker": self.worker,
            "parent": os.getpid(),
        }
        self._send(json.dumps(said).encode() + b"\n")
        failpoints.companions[:] = [self.process.pid]

    async def wait_ready(self) -> None:
        """Claim nothing before the pacemaker is there to renew it.

        And nothing while it starts: a new process needs a fifth of a second of CPU, which would be missed
        by the first jobs.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_WAIT):
                while not self.state.lease_table.turns():  # noqa: ASYNC110 - another process turns it
                    await asyncio.sleep(0.01)

    async def watch(self) -> None:
        """Replace it whenever it dies."""
        pause, stopped = LOOK_EVERY, 0
        while True:
            await asyncio.sleep(pause)
            if self.process is not None and self.process.poll() is None:
                pause = LOOK_EVERY
                stopped = stopped + 1 if read_process_stat(self.process.pid).state in ("T", "t") else 0
                if stopped == STOPPED_LOOKS_MAX:  # one that is frozen alone, while we are not, renews nothing
                    self.process.kill()
                continue
            stopped = 0
            pause = min(pause * 2, RESTART_EVERY_MAX)
            await self._replace()

    async def _replace(self) -> None:
        if self.process is not None:
            log.warning("the pacemaker ended with code %s; another is started", self.process.returncode)
            self.replaced += 1
            _pipe(self.process).close()
            self.process = None
        try:
            await self.start()
        except OSError as refused:  # no process, no memory: the leases in hand are given back if it stays so
            log.error("no pacemaker can be started, so no lease can be renewed: %s", refused)

    def hurry(self, lease: float) -> None:
        """A lease came in that may end before the pacemaker looks again: wake it."""
        if self.state.lease_table.shorten(lease):
            self._send(b".")

    def _send(self, words: bytes) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError):
                _pipe(self.process).write(words)

    async def stop(self) -> None:
        if self.process is None:
            return
        _pipe(self.process).close()
        try:
            await asyncio.to_thread(self.process.wait, 1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        failpoints.companions.clear()


def start_pacemaker(module: str, fd: int, slots: int) -> "subprocess.Popen[bytes]":
    """Start one; asyncio's own call would watch it with a thread or a signal."""
    return subprocess.Popen(
        [sys.executable, "-m", module, str(fd), str(slots)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=[fd],
        bufsize=0,
        process_group=0,  # Ctrl-C at a terminal reaches the worker alone, also while this one starts
    )


def _pipe(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin
