"""The type checker accepts right uses and refuses wrong ones, each on its own line."""

import fcntl
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".mypy_cache" / "uses"
FAULT = re.compile(r":(?P<line>\d+): error: (?P<said>.*)$", re.MULTILINE)


def faults(file: Path) -> dict[int, str]:
    """What mypy --strict says of a file, by line."""
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--config-file=", "--cache-dir"]
    command = [sys.executable, "-m", "mypy", *options, str(CACHE), str(file)]
    CACHE.mkdir(parents=True, exist_ok=True)
    # One after the other: the second finds in the cache what the first had to read.
    with (CACHE / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 1), checked.stderr
    return {int(fault["line"]): fault["said"] for fault in FAULT.finditer(checked.stdout)}


def test_right_uses_are_accepted():
    assert faults(HERE / "right_uses.py") == {}


def test_wrong_uses_are_refused_and_nothing_else_is(tmp_path):
    # Kept as text, so that the checks of this repository do not stumble over it.
    wrong_uses = (HERE / "wrong_uses.txt").read_text()
    marked = {number for number, line in enumerate(wrong_uses.splitlines(), 1) if "# wrong: " in line}
    copy = tmp_path / "wrong_uses.py"
    copy.write_text(wrong_uses)

    found = faults(copy)

    assert marked - found.keys() == set(), "accepted, though marked wrong"
    assert {line: said for line, said in found.items() if line not in marked} == {}
    assert len(marked) > 30
