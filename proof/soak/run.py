"""One run of the suite: its command, how far it is, and what came of it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from proof.soak.clocks import Clock

PROGRESS: Final = re.compile(r"\[ *(\d+)%\](?: (?:FAILED|ERROR) (\S+::.*))?")
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$")
NOT_PASSED: Final = ("failures", "errors", "skipped")
ORDER: Final = "FAULTLINE_TEST_ORDER"


@dataclass(frozen=True)
class Wish:
    """A run to make."""

    number: int
    seed: int
    clock: Clock
    jobs: int
    pytest: Sequence[str]
    log: Path

    def command(self) -> list[str]:
        return [
            *self.clock.prefix(), sys.executable, "-m", "pytest", "-v", "-rfE", "--color=no",
            "-n", str(self.jobs), "--dist", "worksteal", f"--junitxml={self.log.with_suffix('.xml')}",
            *self.pytest,
        ]  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What came of it. Without a count, pytest did not come to its end."""

    wish: Wish
    code: int
    seconds: float
    passed: int | None = None
    failed: Sequence[str] = field(default_factory=tuple)

    @property
    def well(self) -> bool:
        return self.code == 0


def run(wish: Wish, progress: Callable[[int, str], None], clock: Callable[[], float]) -> Ran:
    """Run the suite once; its output goes to the log.

    How far it is goes to `progress`, in percent, with the name of a test that just failed.
    """
    began, failed = clock(), []
    environment = {**os.environ, ORDER: str(wish.seed)}
    with wish.log.open("w") as log, subprocess.Popen(
        wish.command(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        process_group=0,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if found := PROGRESS.search(line):
                    progress(int(found[1]), (found[2] or "").strip())
                elif found := FAILED.match(line):
                    failed.append(found[1])
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)  # `unshare` itself does not pass it on
            raise
    passed = passed_of(wish.log.with_suffix(".xml"))
    return Ran(wish, process.returncode, clock() - began, passed, tuple(failed))


def passed_of(report: Path) -> int | None:
    """How many tests passed, as pytest's own report has it; None where it wrote none."""
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return None
    return sum(_count(one, "tests") - sum(_count(one, name) for name in NOT_PASSED) for one in suites)


def _count(suite: ElementTree.Element, name: str) -> int:
    return int(suite.get(name, 0))
