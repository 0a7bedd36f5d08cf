"""What tests of the command line need: commands run in this process, or in one of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faultline.cli.root import root

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the person who runs the tests, and no `.faultline` of theirs."""
    for name in [name for name in os.environ if name.startswith("FAULTLINE_") and name != "FAULTLINE_PG_BIN"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """Run a command in this process: `run("jobs", "list")`."""

    def run(*words: object, **options: Any) -> Result:
        return CliRunner().invoke(root, [str(word) for word in words], prog_name="faultline", **options)

    return run


@pytest.fixture
def on(database: str, run: Run) -> Run:
    """Run a command on this test's own database."""
    return lambda *words, **options: run("--dsn", database, *words, **options)


@pytest.fixture
def ask(on: Run) -> Callable[..., Any]:
    """What a command prints as JSON, read."""

    def ask(*words: object) -> Any:
        result = on("--output", "json", *words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return ask


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's module with an app, in the current folder."""
    source = Path(__file__).with_name("shop_app.txt").read_text()
    (tmp_path / "shop_under_test.py").write_text(source)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.endswith("_under_test")]:
        del sys.modules[name]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a command in a process of its own; whatever is left of it is killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "faultline", *words],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
