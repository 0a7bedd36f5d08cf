"""The board: what handlers in worker processes note down for the bench, without troubling the database."""

import mmap
import os
import time
from array import array
from pathlib import Path
from typing import Final

FOLDER: Final = "FAULTLINE_BENCH_FOLDER"
STAMPS_MAX: Final = 2_000_000
"""The file has holes: only what is stamped takes room."""

_HEAD_CELLS: Final = 2  # how many handlers have run; when the first one began
_CELL_BYTES: Final = 8
_SIZE: Final = (_HEAD_CELLS + STAMPS_MAX) * _CELL_BYTES


class StartTimes:
    """A small file of one worker process, mapped into memory: noting a job costs next to nothing.

    It is written in whole cells: `struct.pack_into` clears the place first, and a reader may see that.
    """

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(handle, _SIZE)
            self._map = mmap.mmap(handle, _SIZE)
        finally:
            os.close(handle)
        self._cells = memoryview(self._map).cast("q")
        self._count = 0

    @classmethod
    def of_this_process(cls) -> "StartTimes":
        """The board the bench asked this worker process to write."""
        return cls(Path(os.environ[FOLDER]) / str(os.getpid()))

    def note(self) -> None:
        """One more handler has begun."""
        if not self._count:
            self._cells[1] = time.time_ns()
        self._count += 1
        self._cells[0] = self._count

    def stamp(self, number: int) -> None:
        """The handler of this job begins now."""
        self._cells[_HEAD_CELLS + number] = time.time_ns()
        self.note()

    def read(self) -> tuple[int, int]:
        """How many handlers have begun, and when the first did."""
        return self._cells[0], self._cells[1]

    def moments(self, count: int) -> "array[int]":
        """When the handlers of the first so many jobs began; 0 for one that has not."""
        return array("q", self._cells[_HEAD_CELLS : _HEAD_CELLS + count])


class AllStartTimes:
    """Those of all worker processes of a bench and of their children, read from outside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boards: dict[str, StartTimes] = {}

    def _all(self) -> list[StartTimes]:
        # Looked for each time: a handler in its own process brings a board without notice.
        for name in os.listdir(self._folder):  # noqa: PTH208 - a hundred times a second
            if name not in self._boards:
                self._boards[name] = StartTimes(self._folder / name)
        return list(self._boards.values())

    @property
    def count(self) -> int:
        return sum(board.read()[0] for board in self._all())

    @property
    def first_at(self) -> float:
        """When the first handler of all began, in seconds since the epoch."""
        return min(first for _, first in (board.read() for board in self._all()) if first) / 1e9

    def moments(self, count: int) -> list[int]:
        """When each of the first so many jobs last began, in nanoseconds since the epoch; 0 for never."""
        return [max(each) for each in zip(*(board.moments(count) for board in self._all()), strict=True)]
