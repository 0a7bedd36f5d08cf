"""A crew: the worker processes of one system, each a session of its own, logging to files."""

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import places
from benchmarks.peers.peer import Peer


class HandlerEvent(NamedTuple):
    """What a handler told: when, `start` or `end`, which job, and the process group it ran in."""

    at_ns: int
    what: str
    seq: int
    group: int


class PeerWorkers:
    def __init__(self, peer: Peer, database: str, workers: int, tag: str, **environment: Any) -> None:
        self.folder = places.RUNS / f"{database}-{tag}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._peer, self._database, self._environment = peer, database, environment
        self.processes: list[subprocess.Popen[bytes]] = []
        for number in range(workers):
            self.spawn(number)

    def spawn(self, identity: int) -> None:
        """Start one more worker; one that is started again may take a dead one's identity."""
        environment = self._peer.environment(
            self._database, self.folder, BENCH_WORKER_ID=f"w{identity}", **self._environment
        )
        with (self.folder / f"worker{len(self.processes)}.log").open("w") as log:
            self.processes.append(
                subprocess.Popen(
                    [*self._peer.argv, "worker"], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )
            )  # fmt: skip

    def counts(self) -> tuple[int, int | None]:
        """How many handlers have begun, and when the first did."""
        total, first = 0, None
        for file in self.folder.glob("*.count"):
            told = file.read_bytes()
            if len(told) >= 16:
                count, began = struct.unpack("<qq", told[:16])
                total += count
                first = began if first is None else min(first, began)
        return total, first

    def lines(self) -> list[HandlerEvent]:
        found = []
        for file in self.folder.glob("*.lines"):
            for line in file.read_text().splitlines():
                what, seq, group, at = line.split()
                found.append(HandlerEvent(int(at), what, int(seq), int(group)))
        return sorted(found)

    def ended(self) -> list[int]:
        return [process.returncode for process in self.processes if process.poll() is not None]

    def stop(self, grace: float = 4.0) -> None:
        for process in self.processes:
            _signal(process, signal.SIGCONT)
            _signal(process, signal.SIGTERM)
        end = time.monotonic() + grace
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
        for process in self.processes:
            _signal(process, signal.SIGKILL)
            process.wait()

    def log(self, worker: int, lines: int = 15) -> list[str]:
        return self.log_file(worker).read_text(errors="replace").splitlines()[-lines:]

    def log_file(self, worker: int) -> Path:
        return self.folder / f"worker{worker}.log"


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
