"""`make soak` runs the suite many times in random order, and says of each run what came of it."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest

from proof.soak import __main__ as soak
from proof.soak.clocks import CLOCKS
from tests.conftest import pytest_collection_modifyitems

TWO_TESTS = """
import time

def test_that_passes():
    pass

def test_that_passes_or_not():
    assert {passes}

def test_that_tells_the_time():
    print("the clock is near", time.monotonic())
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Logs go where a test says: a folder in /tmp for each would stay there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield
    assert list(folder.glob("faultline-soak-*")) == []


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A suite of three tests, one of which fails if it is asked to; plugins would take long to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def make(passes: bool) -> list[str]:
        file = tmp_path / "test_tiny.py"
        file.write_text(TWO_TESTS.format(passes=passes))
        return [
            "--jobs",
            "0",
            "--busy",
            "0",
            "--logs",
            str(tmp_path / "logs"),
            "-p",
            "xdist",
            "-rPfE",
            str(file),
        ]

    return make


def test_each_run_has_a_line_in_the_table(suite, capsys, tmp_path):
    usable = [clock for clock in CLOCKS if not clock.why_not()]

    code = soak.main(["--runs", str(len(usable)), "--seed", "7", *suite(passes=True)])

    said = capsys.readouterr().out
    assert code == 0, said
    assert f"{len(usable)} of {len(usable)} runs passed" in said
    for number, clock in enumerate(usable, start=1):
        assert f"clock {clock.name}: passed" in said
        log = (tmp_path / "logs" / f"run-{number}.log").read_text()
        near = float(log.partition("the clock is near ")[2].split()[0])
        assert clock.begins_at is None or clock.begins_at - 1 <= near < clock.begins_at + 3600


def test_a_test_that_fails_is_named_and_turns_the_exit_code(suite, capsys):
    code = soak.main(["--runs", "1", *suite(passes=False)])

    said = capsys.readouterr().out
    assert code == 1
    assert "test_tiny.py::test_that_passes_or_not" in said
    assert "0 of 1 runs passed" in said


@pytest.mark.skipif(sys.platform != "linux", reason="time namespaces are Linux's")
def test_a_clock_that_cannot_be_set_is_said_and_left_out(capsys, monkeypatch):
    monkeypatch.setattr("proof.soak.clocks.shutil.which", lambda name: None)

    code = soak.main(["--runs", "0", "--busy", "1"])

    assert code == 0
    assert "no run with a clock near 60 s: there is no unshare (util-linux)" in capsys.readouterr().out


def test_a_seed_orders_files_and_the_tests_of_each(monkeypatch):
    names = [f"tests/test_{file}.py::test_{number}" for file in "abcdef" for number in range(5)]

    def order(seed: str) -> list[str]:
        monkeypatch.setenv("FAULTLINE_TEST_ORDER", seed)
        items = [SimpleNamespace(nodeid=name) for name in names]
        pytest_collection_modifyitems(items)  # type: ignore[arg-type]
        return [item.nodeid for item in items]

    first = order("1")
    files = [name.partition("::")[0] for name in first]
    assert first == order("1") != order("2")
    assert sorted(first) == names != first
    assert sum(here != there for here, there in pairwise(files)) == 5
