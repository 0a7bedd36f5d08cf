"""Worker processes to be measured: `faultline worker` as a user starts it, its weight and its CPU its own."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from faultline.errors import FaultlineError
from faultline.lab.bench.measure.start_times import FOLDER, AllStartTimes
from faultline.lab.drills.processes.worker_processes import ProcessKeeper

STOP_SECONDS_MAX: Final = 30.0
COMMAND: Final = (
    sys.executable, "-P", "-m", "faultline", "worker", "faultline.lab.bench.bench_app:app", "--quiet",
    "--log", "lines",
)  # fmt: skip

REACH: Final = ("FAULTLINE_DSN", "FAULTLINE_SERVER", "FAULTLINE_API_KEY")
"""Variables that say where a worker finds its jobs: set for each one, and never inherited."""


class WorkerGroup:
    """Running worker processes and what their handlers note down."""

    def __init__(
        self,
        reach: Mapping[str, str],
        options: Sequence[str],
        folder: str,
        said: IO[bytes],
        keeper: ProcessKeeper,
    ) -> None:
        self.boards = AllStartTimes(Path(folder))
        self.processes: list[subprocess.Popen[bytes]] = []
        self._command = [*COMMAND, *options]
        # In the environment, not on the command line: a DSN may hold a password.
        ours = {name: value for name, value in os.environ.items() if name not in REACH}
        self._environment = {**ours, **reach, FOLDER: folder}
        self._said = said
        self._keeper = keeper

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def start(self, name: str) -> None:
        """One more worker."""
        process = subprocess.Popen(
            [*self._command, "--name", name],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            process_group=0,
        )
        self._keeper.say("hold", process.pid)
        self.processes.append(process)

    def kill(self, place: int) -> None:
        """End one worker and its pacemaker as a crash of its machine would: at once, without a word."""
        process = self.processes.pop(place)
        _kill(process)
        self._keeper.say("drop", process.pid)

    def stop(self) -> None:
        """Let all of them finish the jobs they hold; kill the ones that do not end."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + STOP_SECONDS_MAX
        for process in self.processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                _kill(process)
            self._keeper.say("drop", process.pid)

    def check(self) -> None:
        """Raise when one of them has ended: a wait would never end."""
        if any(process.poll() is not None for process in self.processes):
            self._said.seek(0)
            words = self._said.read().decode(errors="replace").strip().splitlines()
            raise FaultlineError(f"a worker of the bench ended: {words[-1] if words else 'it said nothing'}")

    def wait_until(
        self, reached: Callable[[], bool], what: str, within_seconds: float, poll_seconds: float = 0.01
    ) -> None:
        """Return when something has come true, while all workers live."""
        give_up_at = time.monotonic() + within_seconds
        while not reached():
            self.check()
            if time.monotonic() > give_up_at:
                raise FaultlineError(f"the bench waited {within_seconds:.0f} s without success: {what}")
            time.sleep(poll_seconds)


@contextmanager
def workers(reach: Mapping[str, str], count: int = 1, options: Sequence[str] = ()) -> Iterator[WorkerGroup]:
    """Start workers; they are gone when the block ends, and when we are killed."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="faultline-bench-"))
        said = stack.enter_context(tempfile.TemporaryFile())
        keeper = ProcessKeeper()
        stack.callback(keeper.close)
        running = WorkerGroup(reach, options, folder, said, keeper)
        stack.callback(running.stop)
        for number in range(1, count + 1):
            running.start(f"bench-{number}")
        yield running


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
