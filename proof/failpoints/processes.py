"""The processes of one case: started armed or not, found by what they left behind, and never left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from faultline.lab.drills.processes.worker_processes import ProcessKeeper

ROOT = Path(__file__).parents[2]

EXPECTED = "its success stands"
"""What a worker logs, with a traceback, about a child that died after its commit."""


class Member:
    """One process, in a session of its own, with a log."""

    def __init__(self, name: str, module: str, environment: dict[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.said = folder / f"{name}.out"
        with self.log.open("wb") as errors, self.said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, name], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                stdout=said, stderr=errors, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._process.send_signal(number)

    def send_to_all(self, number: signal.Signals) -> None:
        """Send a signal to it and to its pacemaker; its children have groups of their own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def gone_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


class CaseProcesses:
    """Victim, rescuer and producers of one case. Leaving the block ends whatever is left of them."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._folder = folder
        self._once = folder / "struck"
        self._once.mkdir()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")},
            "FAULTLINE_DSN": dsn,
        }
        self._keeper = ProcessKeeper()  # kills them if this process is killed
        self._armed: dict[str, str] = {}
        self._members: dict[str, Member] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members.values():
            member.send_to_all(signal.SIGKILL)
            member.gone_within(10)
            self._keeper.say("drop", member.pid)
        self._keeper.close()
        if pid := self.struck():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def arm(self, point: str) -> None:
        self._armed = {"FAULTLINE_FAILPOINTS": point, "FAULTLINE_FAILPOINTS_ONCE": str(self._once)}

    def worker(self, name: str, *, armed: bool = False) -> Member:
        return self._start(name, "proof.failpoints.worker", armed)

    def producer(self, *, armed: bool = False) -> Member:
        return self._start("producer", "proof.failpoints.producer", armed)

    def _start(self, name: str, module: str, armed: bool) -> Member:
        environment = self._environment | (self._armed if armed else {})
        self._members[name] = Member(name, module, environment, self._folder)
        self._keeper.say("hold", self._members[name].pid)
        return self._members[name]

    def named(self, name: str) -> Member:
        return self._members[name]

    def struck(self) -> int:
        """The process that reached the point; 0 as long as none has."""
        trace = self._trace()
        return int(trace[0]) if trace else 0

    def part_struck(self) -> str:
        """Which part of the crew that process is, or was."""
        module = self._trace()[1].split(" -m ")[1].split()[0]
        return module.rpartition(".")[2]

    def _trace(self) -> list[str]:
        traces = [trace for trace in self._once.iterdir() if not trace.name.startswith(".")]
        return traces[0].read_text().split("\n") if traces else []

    def thaw(self) -> None:
        """Continue the frozen processes: the victim, its pacemaker, and the one that reached the point."""
        for member in self._members.values():
            member.send_to_all(signal.SIGCONT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.struck(), signal.SIGCONT)

    def acknowledged(self) -> list[int]:
        """The ids that enqueues have answered with."""
        return [int(line) for line in self._members["producer"].said.read_text().split()]

    def left_behind(self) -> list[str]:
        """The commands of processes that are still there: their environment names the case's database."""
        mark, found = self._environment["FAULTLINE_DSN"].encode(), []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in environment.read_bytes():
                    command = environment.with_name("cmdline").read_bytes()
                    found.append(command.replace(b"\0", b" ").decode(errors="replace"))
        return found

    def leave(self, seconds: float) -> list[str]:
        """Ask all processes to leave; returns those that did not, and unexpected messages."""
        complaints = []
        for member in self._members.values():
            member.send(signal.SIGTERM)
        give_up_at = time.monotonic() + seconds
        for member in self._members.values():
            if not member.gone_within(max(0.1, give_up_at - time.monotonic())):
                complaints.append(f"{member.name} would not leave")
            told = member.log.read_text()
            if "Traceback" in told and EXPECTED not in told:
                complaints.append(f"{member.name} told of an error it did not expect: {told[-2000:]}")
        return complaints
