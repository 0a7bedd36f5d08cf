"""The board: what handlers in worker processes note down for the bench, without troubling the database."""

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final

FOLDER: Final = "FAULTLINE_BENCH_FOLDER"
STAMPS_MAX: Final = 20_000

_HEAD: Final = struct.Struct("<qq")  # how many handlers have run; when the first one began
_MOMENT: Final = struct.Struct("<q")
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

    def moment(self, number: int) -> int:
        """When the handler of this job began; 0 when it has not."""
        moment: int = _MOMENT.unpack_from(self._map, _HEAD.size + number * _MOMENT.size)[0]
        return moment


class Boards:
    """Those of all worker processes of a bench, read from outside."""

    def __init__(self, folder: Path, pids: list[int]) -> None:
        self._boards = [Board(folder / str(pid)) for pid in pids]

    @property
    def count(self) -> int:
        return sum(board.read()[0] for board in self._boards)

    @property
    def first_at(self) -> float:
        """When the first handler of all began, in seconds since the epoch."""
        return min(first for _, first in (board.read() for board in self._boards) if first) / 1e9

    def moment(self, number: int) -> int:
        return max(board.moment(number) for board in self._boards)
