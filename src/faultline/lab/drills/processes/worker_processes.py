"""Real worker processes, to be frozen, continued and killed; none of them is ever left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

from faultline.lab.drills.processes import keeper
from faultline.lab.drills.view.trace import DrillStuck, Trace, TraceSign, read

END_SECONDS_MAX = 10.0


class ProcessKeeper:
    """Our end of the keeper process, which kills the processes left behind if this one is killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._speaking = threading.Lock()

    def say(self, word: str, group: int) -> None:
        assert self._process.stdin is not None
        with self._speaking, contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(f"{word} {group}\n")
            self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        with self._speaking, contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait(END_SECONDS_MAX)


class DrillProcess:
    """A worker with its pacemaker, or a client, in its own process group, which a Ctrl-C does not reach."""

    def __init__(
        self,
        who: str,
        order: dict[str, Any],
        trace: Trace,
        keeper: ProcessKeeper,
        failpoints: str = "",
        program: str = "worker_main",
    ) -> None:
        self.who = who
        self._trace = trace
        self._keeper = keeper
        self.process = subprocess.Popen(
            # -P: a file in the current directory must not hide a module of ours with the same name.
            [sys.executable, "-P", "-m", f"faultline.lab.drills.processes.{program}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "FAULTLINE_FAILPOINTS": failpoints},
            process_group=0,
        )
        keeper.say("hold", self.pid)
        # Over the pipe, not on the command line: a DSN may hold a password. The worker reads it until
        # the drill ends. A process that died at once is reported by its exit code.
        self.say(json.dumps({"name": who, **order}).encode() + b"\n")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        self._follower.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def say(self, line: bytes) -> None:
        """Say a line to it, on its standard input."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the worker alone."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def send_to_group(self, number: signal.Signals) -> None:
        """Send a signal to worker and pacemaker, unless both are gone: their number may be another's."""
        if self._reader.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait_stopped(self, within_seconds: float = 30.0) -> None:
        """Return when the process has been frozen."""
        self._wait("stopped", within_seconds)

    def wait_exit(self, within_seconds: float = 30.0) -> int:
        """Return its exit code when it has ended."""
        code: int = self._wait("exited", within_seconds).facts["code"]
        return code

    def wait_gone(self, within_seconds: float = 10.0) -> bool:
        """True when the worker and its pacemaker are both gone: our pipe has no other end any more."""
        self._reader.join(within_seconds)
        return not self._reader.is_alive()

    def end(self) -> None:
        """Kill whatever is left of it, frozen or not, and collect it."""
        self.send_to_group(signal.SIGKILL)
        self._reader.join(END_SECONDS_MAX)
        self._follower.join(END_SECONDS_MAX)
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def _wait(self, what: str, within_seconds: float) -> TraceSign:
        sign = self._trace.wait_for(
            lambda sign: sign.facts.get("pid") == self.pid and sign.what in (what, "exited"),
            within_seconds, f"worker {self.who} is {what}",
        )  # fmt: skip
        if sign.what != what:  # it will never happen now
            raise DrillStuck(f"worker {self.who} ended with code {sign.facts['code']} before it was {what}")
        return sign

    def _read(self) -> None:
        """Pass on what worker and pacemaker say, until both have closed the pipe by ending."""
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self._trace.tell(read(self.who, line.decode(errors="replace")))
        self._keeper.say("drop", self.pid)

    def _follow(self) -> None:
        """Wait for each change of the process: the kernel reports it, without polls, and no zombie stays."""
        while self.process.returncode is None:
            _, status = os.waitpid(self.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                self._trace.tell(TraceSign(self.who, "stopped", {"pid": self.pid}))
            else:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                facts = {"pid": self.pid, "code": self.process.returncode}
                self._trace.tell(TraceSign(self.who, "exited", facts))
