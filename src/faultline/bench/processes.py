"""Worker processes to be measured: `faultline worker` as a user starts it, its weight and its CPU its own."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from faultline.bench.board import FOLDER, Boards
from faultline.drills.processes import Keeper
from faultline.errors import FaultlineError

STOP_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True)
class Workers:
    """Running worker processes and what their handlers note down."""

    processes: list[subprocess.Popen[bytes]]
    boards: Boards
    _said: IO[bytes]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def check(self) -> None:
        """Raise when one of them has ended: nothing more would come of waiting."""
        if any(process.poll() is not None for process in self.processes):
            self._said.seek(0)
            words = self._said.read().decode(errors="replace").strip().splitlines()
            raise FaultlineError(f"a worker of the bench ended: {words[-1] if words else 'it said nothing'}")

    def wait_for(self, count: int, within_seconds: float, poll_seconds: float = 0.002) -> None:
        """Return when so many handlers have begun."""
        give_up_at = time.monotonic() + within_seconds
        while self.boards.count < count:
            self.check()
            if time.monotonic() > give_up_at:
                raise FaultlineError(
                    f"only {self.boards.count} of {count} jobs began within {within_seconds:.0f} s"
                )
            time.sleep(poll_seconds)


@contextmanager
def workers(dsn: str, count: int = 1) -> Iterator[Workers]:
    """Start workers with default settings; they are gone when the block ends, and when we are killed."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="faultline-bench-"))
        said = stack.enter_context(tempfile.TemporaryFile())
        keeper = Keeper()
        stack.callback(keeper.close)
        processes = []
        for _ in range(count):
            process = _start(dsn, folder, said)
            keeper.say("hold", process.pid)
            stack.callback(_stop, process, keeper)
            processes.append(process)
        yield Workers(processes, Boards(Path(folder), [process.pid for process in processes]), said)


def _start(dsn: str, folder: str, said: IO[bytes]) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "faultline",
        "worker",
        "faultline.bench.app:app",
        "--quiet",
        "--log",
        "lines",
    ]
    # In the environment, not on the command line: a DSN may hold a password.
    environment = {**os.environ, "FAULTLINE_DSN": dsn, FOLDER: folder}
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, process_group=0
    )


def _stop(process: subprocess.Popen[bytes], keeper: Keeper) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    keeper.say("drop", process.pid)
