"""The skeleton of every scenario: a stand for its cases, and for each a database and an app of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from faultline.app import Faultline
from faultline.lab.bench.bench_database import database
from faultline.lab.bench.measure.sampler import Series
from faultline.store.pool import Store

Progress = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and how much there is."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one case gave: its figures, its gauges over time, and a remark where something was left out."""

    row: Row
    series: Series | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: an empty database, a producer's app and a store on it."""

    label: str
    dsn: str = field(repr=False)
    app: Faultline
    store: Store
    told: Progress
    every: float
    """Seconds from one sample to the next."""

    def hang_up(self) -> None:
        """Close our connections until they are needed again: the server counts what they did as they go."""
        self.app.close()
        self.store.close()


@dataclass(frozen=True, slots=True)
class CaseRunner:
    """Where a scenario's cases run, one after the other."""

    server: str = field(repr=False)
    told: Progress
    every: float = 1.0

    @contextmanager
    def case(self, label: str) -> Iterator[Case]:
        """A case on a fresh database; nothing of it is left when the block ends."""
        with database(self.server) as dsn, Faultline(dsn) as app:
            store = Store(dsn, connections_max=2)
            try:
                yield Case(label, dsn, app, store, lambda *said: self._tell(label, *said), self.every)
            finally:
                store.close()

    def _tell(self, label: str, what: str, done: int, total: int) -> None:
        self.told(f"{label}: {what}" if label else what, done, total)
