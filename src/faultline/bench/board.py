"""The board: what handlers in worker processes note down for the bench, without troubling the database."""

import mmap
import os
import struct
import time
from array import array
from pathlib import Path
from typing import Final

FOLDER: Final = "FAULTLINE_BENCH_FOLDER"
STAMPS_MAX: Final = 2_000_000
"""The file has holes: only what is stamped takes room."""

_HEAD: Final = struct.Struct("<qq")  # how many handlers have run; when the first one began
_MOMENT: Final = struct.Struct("=q")
_SIZE: Final = _HEAD.size + STAMPS_MAX * _MOMENT.size


class Board:
    """A small file of one worker process, mapped into memory: noting a job costs next to nothing."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(handle, _SIZE)
            self._map = mmap.mmap(handle, _SIZE)
        finally:
            os.close(handle)
        self._count = 0
        self._first = 0

    @classmethod
    def of_this_process(cls) -> "Board":
        """The board the bench asked this worker process to write."""
        return cls(Path(os.environ[FOLDER]) / str(os.getpid()))

    def note(self) -> None:
        """One more handler has begun."""
        if not self._count:
            self._first = time.time_ns()
        self._count += 1
        _HEAD.pack_into(self._map, 0, self._count, self._first)

    def stamp(self, number: int) -> None:
        """The handler of this job begins now."""
        _MOMENT.pack_into(self._map, _HEAD.size + number * _MOMENT.size, time.time_ns())
        self.note()

    def read(self) -> tuple[int, int]:
        """How many handlers have begun, and when the first did."""
        count, first = _HEAD.unpack_from(self._map, 0)
        return count, first

    def moments(self, count: int) -> "array[int]":
        """When the handlers of the first so many jobs began; 0 for one that has not."""
        found = array("q")
        found.frombytes(self._map[_HEAD.size : _HEAD.size + count * _MOMENT.size])
        return found


class Boards:
    """Those of all worker processes of a bench and of their children, read from outside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boards: dict[str, Board] = {}

    def _all(self) -> list[Board]:
        # Looked for each time: a handler in a process of its own brings a board that nobody announced.
        for name in os.listdir(self._folder):  # noqa: PTH208 - a hundred times a second
            if name not in self._boards:
                self._boards[name] = Board(self._folder / name)
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
