"""One mutant on trial: its test is run against the broken copy, and what it says is the verdict."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from proof.mutants.mutant import ROOT, Mutant
from proof.mutants.sandbox import broken_copy
from proof.mutants.witness import WITNESS

SECONDS_MAX = 100
"""A test that hangs on a mutant has noticed it, but should fail sooner."""

PATIENCE = 10
"""How many seconds a test waits for an event that often does not come on a mutant."""

# Plugins that happen to be installed take as long to load as everything else: no mutant's test needs them.
PLUGINS = ("xdist.plugin", "pytest_timeout", "proof.mutants.witness", "no:cacheprovider")

Word = Literal["killed", "survived", "unfit"]

RED = {"AssertionError", "Failed", "FaultlineError", "TimeoutError"}
"""The errors of a test when a promise is broken."""

NOT_RED = {"SchemaOutdated", "SchemaMissing"}
"""The errors of a mutant whose SQL does not run at all: red for the wrong reason."""


@dataclass(frozen=True)
class Verdict:
    """The fate of a mutant: killed by a test, survived, or unfit to be tried."""

    mutant: Mutant
    word: Word
    first: str
    """The first test that failed."""
    said: str
    seconds: float


def judge(mutant: Mutant, seen: dict[str, Any], seconds: float) -> Verdict:
    """What the witness saw, as a verdict."""
    failed = seen.get("failed")
    if failed is None:
        word: Word = "survived" if seen.get("passed") else "unfit"
        return Verdict(mutant, word, "", "no test ran" if word == "unfit" else "", seconds)
    red = failed["part"] == "call" and {*RED, *mutant.red_by} & set(failed["kinds"])
    red = red and failed["kinds"][0] not in NOT_RED
    said = f"{(failed['kinds'] or ['?'])[0]}: {failed['said']}"
    return Verdict(mutant, "killed" if red else "unfit", failed["test"], said, seconds)


def stand(mutant: Mutant, number: int, folder: Path, dsn: str, template: str) -> Verdict:
    """Break a copy, run the test that must notice, and judge."""
    began = time.monotonic()
    witness = folder / f"witness-{number}.json"
    ready = template if mutant.leaves_the_schema_alone else ""
    try:
        with broken_copy(folder, number, mutant) as copy:
            spoken = run_test([mutant.test], copy, dsn, witness, template=ready)
    except (LookupError, SyntaxError) as misfit:
        return Verdict(mutant, "unfit", "", str(misfit), time.monotonic() - began)
    except subprocess.TimeoutExpired:
        return Verdict(mutant, "unfit", mutant.test, "it hung", time.monotonic() - began)
    if not witness.exists():
        return Verdict(mutant, "unfit", "", spoken[-300:], time.monotonic() - began)
    return judge(mutant, json.loads(witness.read_text()), time.monotonic() - began)


def run_test(
    tests: list[str],
    copy: Path,
    dsn: str,
    witness: Path,
    seconds_max: float | None = SECONDS_MAX,
    template: str = "",
) -> str:
    """Run tests against the package in `copy`, until the first failure; what pytest printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "FAULTLINE_TEST_DSN": dsn,
        "FAULTLINE_TEST_PATIENCE": str(PATIENCE),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        WITNESS: str(witness),
        **({"FAULTLINE_TEST_TEMPLATE": template} if template else {}),
    }
    plugins = [word for name in PLUGINS for word in ("-p", name)]
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        spoken, _ = run.communicate(timeout=seconds_max)
        return spoken
    finally:
        _end_all(run.pid, f"{WITNESS}={witness}")


def _end_all(group: int, mark: str) -> None:
    """End the processes that a mutant left behind, such as a pacemaker in its own session.

    They have the mark in their environment; one could keep a core busy for as long as the machine runs.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)
