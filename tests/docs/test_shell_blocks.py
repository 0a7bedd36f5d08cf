"""Shell blocks of the documents: our commands and requests are run, and what others name is there."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from faultline.cli.root import root
from scripts.docs.blocks import ROOT
from tests.deploy.test_commands import understood
from tests.docs import shell
from tests.docs.shell import Command
from tests.http.serving import serving

APP = """
from faultline import Faultline
app = Faultline()

@app.task
def greet(name: str) -> str:
    return f"hello {name}"

@app.task(queue="billing")
def charge(order_id: int) -> None: ...
"""

BIN = Path(sys.executable).parent

OF_OTHERS = {
    "docker": "compose.yaml is checked by tests/deploy, and run by `make image-check`",
    "helm": "the chart is rendered by tests/deploy",
    "install": "the units are checked by tests/deploy",
    "isolationtester": "PostgreSQL's own; tests/explorer reads the specs",
    "kubectl": "the manifests are checked by tests/deploy",
    "node": "the worker in JavaScript has dependencies of its own",
    "npm": "the same",
    "python": "the README's program is run by tests/cli/test_dev.py",
    "python3": "makes an environment, as `make release-check` does",
    "systemctl": "the units are checked by tests/deploy",
}
"""Programs that need a cluster, root or a network. Files of ours that their lines name must be there."""

VERDICTS = {"doctor": {0, 3}, "health": {0, 1}}
"""What these think of a test's database is not the question: it runs without fsync and without a worker."""

COMMANDS = {f"{command.where} {command.text}": command for command in shell.all_commands()}
OURS = {name: command for name, command in COMMANDS.items() if command.program == "faultline"}
SHORT = {name: command for name, command in OURS.items() if command.is_short}
WITH_REQUESTS = sorted({command.file for command in COMMANDS.values() if command.program == "curl"})


@pytest.mark.parametrize("command", OURS.values(), ids=OURS.keys())
def test_our_commands_are_understood(command: Command) -> None:
    understood([word for word in command.words if word not in ("...", "--quiet")])


@pytest.mark.parametrize("command", SHORT.values(), ids=SHORT.keys())
def test_our_short_commands_run(command: Command, database, store, tmp_path, monkeypatch) -> None:
    """On a database with the jobs, the key and the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAULTLINE_DSN", database)
    prepare(database, tmp_path)
    words = shell.without_settings(re.sub(r"--dsn \S+", "", command.text))

    done = CliRunner().invoke(root, words[1:], prog_name="faultline")

    assert done.exit_code in VERDICTS.get(words[1], {0}), done.output


def prepare(database: str, folder: Path) -> None:
    (folder / "shop.py").write_text(APP)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("select faultline.enqueue('greet', '{\"name\": \"Ada\"}') from generate_series(1, 50)")
        conn.execute("select faultline.set_schedule('nightly', 'greet', every => '1 day')")
        conn.execute("select faultline.create_key('3f1c7a9e0b52', sha256('a'), 'of_the_pages', '{enqueue}')")
        conn.execute("select faultline.set_limit('billing', total => 100)")
    for name in ("acknowledged.jsonl", "acknowledged.txt"):
        (folder / name).write_text("1\n")


@pytest.mark.parametrize("file", WITH_REQUESTS)
def test_requests_are_answered_as_the_page_says(file: str, database, tmp_path) -> None:
    """All of a page together, as they build on each other; none is refused unless a comment says so."""
    asked = shell.requests(file)
    with serving(database, trust_loopback=False) as service:
        done = subprocess.run(
            ["bash", "-eu"], input=script(asked).replace("http://localhost:8000", service.url), cwd=tmp_path,
            env={**os.environ, "FAULTLINE_DSN": database, "PATH": f"{BIN}:{os.environ['PATH']}"},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    wanted = [status for line, status in asked if line.startswith("curl ")]
    answered = re.findall(r"^status (\d+)$", done.stdout, re.MULTILINE)
    assert len(answered) == len(wanted)
    for status, told in zip(answered, wanted, strict=True):
        assert status == told if told else status.startswith("2"), done.stdout


def script(asked: list[tuple[str, str]]) -> str:
    """A stream is left after its time, which curl calls an error (28)."""
    function = """curl() { command curl -sS -w '\\nstatus %{http_code}\\n' "$@" || test $? = 28; }"""
    return "\n".join([function, *(line for line, _ in asked)])


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_other_lines_name_what_is_there(command: Command) -> None:
    match command.program:
        case "faultline" | "curl" | "echo":
            pass  # run, or read, above
        case "make":
            assert re.search(
                rf"^[a-z -]*\b{command.words[1]}\b[a-z -]*:", (ROOT / "Makefile").read_text(), re.M
            )
        case "" | "export":
            for name in re.findall(r"\bFAULTLINE_\w+", command.text):
                assert is_read(name), name
        case "pip":
            assert extras(command.text) <= set(known_extras())
        case program:
            assert program in OF_OTHERS
            for path in re.findall(r"\b(?:deploy|scripts|examples|proof)/[\w./-]+\w", command.text):
                assert (ROOT / path).exists(), path


def is_read(name: str) -> bool:
    return any(f'"{name}"' in file.read_text() for file in (ROOT / "src").rglob("*.py"))


def extras(text: str) -> set[str]:
    return {
        extra for listed in re.findall(r"faultline-queue\[([\w,]+)\]", text) for extra in listed.split(",")
    }


def known_extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found
