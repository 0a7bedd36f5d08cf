"""Keep every core busy for as long as a block lasts."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

# It ends with the process that started it, however that one ends.
BUSY: Final = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(200_000))
"""


@contextlib.contextmanager
def busy_cores(count: int | None = None) -> Iterator[int]:
    """Run a busy loop for each core, or as many as asked for; gives their number."""
    count = os.cpu_count() or 1 if count is None else count
    loops = [subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY]) for _ in range(count)]
    try:
        yield count
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
