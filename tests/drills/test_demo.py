"""The demo shows each promise kept, fails when one is broken, and leaves nothing behind however it ends."""

import os
import re
import secrets
import signal
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from faultline.lab.drills import demo_jobs
from faultline.lab.drills.demo import run_demo
from faultline.lab.drills.run_drill import BROKEN, INTERRUPTED
from faultline.lab.drills.scenarios import zombie
from tests.drills.processes import MARK, left_of, pids_marked
from tests.promises.rewriting import rewrite

TOKEN_GUARD = "and job.token = complete.token"
CLAIM_GUARD = "and job.claim = complete.claim"


@pytest.fixture
def brisk(monkeypatch):
    """The same demo with fewer ordinary jobs and no pauses for a reader."""
    monkeypatch.setattr(demo_jobs, "JOBS", 30)
    monkeypatch.setattr(zombie, "PACE_SECONDS", 0)


def test_every_promise_shown_is_kept(console, tmp_path):
    picture = tmp_path / "timeline.svg"

    code = run_demo(console, picture=picture)

    printed = console.file.getvalue()
    assert code == 0, printed
    assert "300 of 300 receipts" in printed
    assert re.search(r"A +is REFUSED: token (\d+) \(token_mismatch\)", printed)
    assert len(re.findall(r"thief +is REFUSED", printed)) == 2
    assert "Every promise was kept." in printed
    assert "A lease has two halves" in printed
    assert printed.rstrip().endswith("faultline dev shop:app")
    assert max(len(line) for line in printed.splitlines()) <= 80
    ElementTree.fromstring(picture.read_text())


@pytest.mark.long
@pytest.mark.parametrize("guards", [[CLAIM_GUARD], [TOKEN_GUARD], [CLAIM_GUARD, TOKEN_GUARD]])
def test_it_fails_when_a_guard_is_deleted_from_complete(brisk, console, guards):
    def sabotage(dsn):
        for guard in guards:
            rewrite(dsn, "complete", guard, "")

    code = run_demo(console, sabotage=sabotage)

    printed = console.file.getvalue()
    assert code == BROKEN
    assert re.search(r"BROKEN +the money was moved once, by the worker that held the job", printed), printed
    assert "It went through!" in printed


MOMENTS = [
    pytest.param(signal.SIGINT, "Starting", marks=pytest.mark.long),
    pytest.param(signal.SIGINT, "100 of 300", marks=pytest.mark.long),
    (signal.SIGINT, "There we freeze it"),
    pytest.param(signal.SIGKILL, "is up and the schema", marks=pytest.mark.long),
    (signal.SIGKILL, "There we freeze it"),
    pytest.param(signal.SIGKILL, "thief", marks=pytest.mark.long),
]


class Demo:
    """The demo in a process of its own, told from all others by a mark in its environment."""

    def __init__(self, folder):
        self.folder = folder
        self.mark = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from faultline.lab.drills.demo import *;"
             "sys.exit(run_demo(Console()))"],
            env={**os.environ, MARK: self.mark, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def wait_until_it_says(self, words):
        for line in self.process.stdout:
            if words in line:
                return
        raise AssertionError(f"it never said {words!r}")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(("number", "moment"), MOMENTS)
def test_nothing_is_left_behind(tmp_path, number, moment):
    """Ctrl-C goes to the whole group in the foreground, a kill to the demo alone."""
    demo = Demo(tmp_path)
    demo.wait_until_it_says(moment)
    before = pids_marked(demo.mark)

    (os.killpg if number == signal.SIGINT else os.kill)(demo.process.pid, number)
    demo.process.communicate(timeout=30)

    assert demo.process.returncode == (INTERRUPTED if number == signal.SIGINT else -signal.SIGKILL)
    assert left_of(demo.mark, before) == set()
    if number == signal.SIGINT:
        assert list(tmp_path.iterdir()) == []
