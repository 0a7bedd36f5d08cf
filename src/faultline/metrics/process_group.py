"""One set of figures for several processes: each writes its own file, and their supervisor adds them up.

A file cannot hang: a frozen or killed process leaves its last figures, and delays no other. The counts of
a dead process stay, so that no counter ever falls; its gauges are dropped.
"""

import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from faultline.metrics.series import MetricSeries, Snapshot, from_json, lasting, merged, to_json

log = logging.getLogger("faultline.metrics")

WRITE_EVERY: Final = 1.0


class ProcessGroup:
    """The supervisor's side: the files of one folder, and the counts of ended processes."""

    def __init__(self, folder: Path, own: MetricSeries, living: Callable[[], set[int]]) -> None:
        self.folder = folder
        self._own = own
        self._living = living
        self._ended: Snapshot = {}
        self._turn = threading.Lock()

    def snapshot(self) -> Snapshot:
        """All processes as one, by their last files."""
        with self._turn:
            living = self._living()
            told = []
            for file in sorted(self.folder.glob("*.json")):
                figures = _read(file)
                if int(file.stem) in living:
                    told.append(figures)
                else:
                    self._ended = merged([self._ended, lasting(figures)])
                    file.unlink(missing_ok=True)
            return merged([self._own.snapshot(), self._ended, *told])


def _read(file: Path) -> Snapshot:
    try:
        return from_json(json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return {}


def write(folder: Path, figures: MetricSeries) -> None:
    """Write this process's figures for its supervisor: the file is always whole, old or new."""
    draft = folder / f"{os.getpid()}.draft"
    draft.write_bytes(json.dumps(to_json(figures.snapshot())).encode())
    draft.replace(folder / f"{os.getpid()}.json")


@contextlib.contextmanager
def writing(folder: Path, figures: MetricSeries) -> Iterator[None]:
    """Write them each second while the block runs, and once more at its end."""
    over = threading.Event()

    def write_on() -> None:
        while not over.wait(WRITE_EVERY):
            _try_to_write(folder, figures)

    thread = threading.Thread(target=write_on, daemon=True, name="faultline-figures")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(WRITE_EVERY)
        _try_to_write(folder, figures)


def _try_to_write(folder: Path, figures: MetricSeries) -> None:
    try:
        write(folder, figures)
    except OSError as trouble:  # a full disk, a deleted folder: jobs go on
        log.debug("figures could not be written: %s", trouble)
