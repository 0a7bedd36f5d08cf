"""Processes forked for tests are what started ones would be."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests import prefork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")


def tell(code: int, *words: str) -> None:
    """In the process: its parent, group, place, environment and words; then its end."""
    facts = [os.getppid(), os.getpgid(0) == os.getpid(), Path.cwd(), os.environ["SAID"], *words]
    print(*facts, sep="\n")
    print("to stderr", file=sys.stderr)
    sys.exit(code)


def wait_for_ever() -> None:
    while True:
        time.sleep(60)


def test_it_has_our_words_streams_environment_and_place(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    out, errors = tmp_path / "out", tmp_path / "errors"

    with out.open("wb") as stdout, errors.open("wb") as stderr, Path(os.devnull).open("rb") as nothing:
        process = prefork.start(
            f"{__name__}:tell", 7, "a word", stdin=nothing.fileno(), stdout=stdout.fileno(),
            stderr=stderr.fileno(), environment={**os.environ, "SAID": "so"},
        )  # fmt: skip
        code = process.wait(60)

    assert code == 7
    assert out.read_text().splitlines() == [str(os.getpid()), "True", str(tmp_path), "so", "a word"]
    assert errors.read_text() == "to stderr\n"


def test_it_is_our_child_and_ends_by_a_signal_of_ours() -> None:
    with Path(os.devnull).open("r+b") as nothing:
        process = prefork.start(f"{__name__}:wait_for_ever", stdin=nothing.fileno(), stdout=nothing.fileno())
    assert process.poll() is None

    process.kill()

    assert process.wait(60) == -signal.SIGKILL
