"""Send a Ctrl-C to a command at some moment of its life, and see whether it was heard."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

END_SECONDS_MAX = 90.0
HEARD = (130, -signal.SIGINT)
"""The code of a command that says so, and that of Python while it starts: it ends itself by the signal."""

BEFORE_US = "init_import_site"
"""Python's own last words when it is interrupted before it runs anything of ours; the code is 1."""


@dataclass(frozen=True)
class CliCommand:
    """The words of a command line, and what it may answer to a Ctrl-C."""

    words: tuple[str, ...]
    lasts: bool = False
    """It is far from its end when it is interrupted."""
    serves: bool = False
    """It leaves in good order, with 0."""
    seconds: float = 2.0
    """Within which it is interrupted."""

    def __str__(self) -> str:
        return " ".join(word for word in self.words if "/" not in word)


ENDING = (
    ("migrate",), ("migrate", "--check"), ("enqueue", "greet", "{}"), ("jobs", "list"), ("queues", "list"),
    ("workers",), ("ledger",), ("audit",), ("keys", "list"), ("roles", "show"), ("acts",), ("metrics",),
    ("health",), ("doctor",), ("version",), ("drill",),
)  # fmt: skip
WORKER = ("worker", "shop_under_test:app", "--quiet")
COMMANDS = (
    CliCommand(("demo",), lasts=True),
    CliCommand(("drill", "lease-race"), lasts=True),
    CliCommand(("bench", "drain", "--quick"), lasts=True),
    CliCommand(("conformance", "--worker"), lasts=True),
    CliCommand(("dev", "--db-only", "--folder", "data"), lasts=True, serves=True, seconds=3.0),
    CliCommand(WORKER, lasts=True, serves=True),
    CliCommand((*WORKER, "--processes", "2"), lasts=True, serves=True),
    CliCommand(("server", "--http", "127.0.0.1:0"), lasts=True, serves=True),
    CliCommand(("metrics", "--listen", "127.0.0.1:0"), lasts=True, serves=True),
    *(CliCommand(words) for words in ENDING),
)
"""Every command, as briefly as it can be had."""


def interrupt(command: CliCommand, after: float, dsn: str, folder: Path) -> str:
    """Interrupt it so many seconds after its start; gives what is wrong, or nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "faultline", *command.words],
        env={**os.environ, "FAULTLINE_DSN": dsn, "PYTHONPATH": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    with process:
        alarm = threading.Timer(after, lambda: _press_ctrl_c(process))
        alarm.start()
        try:
            _, said = process.communicate(timeout=END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"{command}, interrupted after {after:.3f} s: it did not end in {END_SECONDS_MAX} s"
        finally:
            alarm.cancel()
    return _wrong(command, after, process.returncode, said)


def _press_ctrl_c(process: "subprocess.Popen[str]") -> None:
    """The terminal sends it to the whole group in the foreground."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)


def _wrong(command: CliCommand, after: float, code: int, said: str) -> str:
    if code in HEARD or (code == 1 and BEFORE_US in said):
        return ""
    if code in (0, 3) and (command.serves or not command.lasts) and "Traceback" not in said:
        return ""
    return f"{command}, interrupted after {after:.3f} s: it ended with {code} and said {said[-600:]}"
