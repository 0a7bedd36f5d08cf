"""The sampler: reads a few gauges over and over while something runs, and gives them as series over time."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

log = logging.getLogger("faultline.lab.bench")

Reading = Mapping[str, float | None]
Gauge = Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class Series:
    """What gauges said, moment by moment; and moments at which something was done, by name."""

    case: str
    seconds: list[float] = field(default_factory=list)
    values: dict[str, list[float | None]] = field(default_factory=dict)
    marks: list[tuple[str, float]] = field(default_factory=list)

    def add(self, at: float, reading: Reading) -> None:
        self.seconds.append(round(at, 3))
        for name, value in reading.items():
            self.values.setdefault(name, []).append(None if value is None else round(value, 4))

    def between(self, name: str, start: float, end: float) -> list[float]:
        """The known values of one gauge in a stretch of time."""
        pairs = zip(self.seconds, self.values.get(name, []), strict=False)
        return [value for at, value in pairs if value is not None and start <= at < end]

    def document(self) -> dict[str, Any]:
        return {"case": self.case, "seconds": self.seconds, "values": self.values, "marks": self.marks}


class RateGauge:
    """Makes a gauge of how fast a count grows."""

    def __init__(self, name: str, count: Callable[[], float]) -> None:
        self._name = name
        self._count = count
        self._last = (time.perf_counter(), count())

    def __call__(self) -> Reading:
        at, count = time.perf_counter(), self._count()
        last_at, last = self._last
        self._last = (at, count)
        return {self._name: (count - last) / (at - last_at)}


class Sampler:
    """A thread that reads the gauges each `every` seconds until the block ends."""

    def __init__(self, case: str, gauges: list[Gauge], every: float) -> None:
        self.series = Series(case)
        self._gauges = gauges
        self._every = every
        self._over = threading.Event()
        self._began = time.perf_counter()
        self._thread = threading.Thread(target=self._watch, name="faultline-bench-sampler", daemon=True)

    @property
    def seconds(self) -> float:
        """How long it has been sampling."""
        return time.perf_counter() - self._began

    def mark(self, name: str) -> float:
        """Remember that something is done at this moment; answers the moment."""
        at = self.seconds
        self.series.marks.append((name, round(at, 3)))
        return at

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if kind is None:
            self._read()  # the end of a short stretch is seen, too

    def _watch(self) -> None:
        turn = 1
        while not self._over.wait(max(0.0, turn * self._every - self.seconds)):
            try:
                self._read()
            except Exception:
                log.exception("a gauge could not be read; the bench goes on without its series")
                return
            turn = max(turn + 1, int(self.seconds / self._every))

    def _read(self) -> None:
        reading = {name: value for gauge in self._gauges for name, value in gauge().items()}
        self.series.add(self.seconds, reading)
