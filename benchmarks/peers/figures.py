"""Figures of a run: what is measured, its middle and spread over the repeats, and how it compares."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of the repeats, with the lowest and the highest."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        """Of these values, or None when there are none.

        >>> Spread.of([3, 1, 2])
        Spread(middle=2, low=1, high=3)
        """
        return cls(statistics.median(values), min(values), max(values)) if values else None

    def show(self, form: str) -> str:
        """
        >>> Spread(20_651, 19_000, 21_300.4).show(",.0f")
        '20,651 (19,000–21,300)'
        """
        return f"{self.middle:{form}} ({self.low:{form}}–{self.high:{form}})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One thing that is measured of every system."""

    keys: tuple[str, ...]
    """Its names in the JSON; several when several phases measure it."""
    title: str
    unit: str
    more_is_better: bool = True
    form: str = ",.0f"
    compared: bool = True
    """Whether a ratio to the best peer means anything."""


SINGLE = Measure(keys=("single_per_s",), title="Enqueue, one awaited call at a time", unit="jobs/s")
BULK = Measure(keys=("bulk_per_s", "bulk2_per_s"), title="Enqueue in bulk", unit="jobs/s")
DRAIN1 = Measure(keys=("drain1_per_s",), title="Drain, one worker process", unit="jobs/s")
DRAIN2 = Measure(keys=("drain2_per_s",), title="Drain, two worker processes", unit="jobs/s")
PICKUP50 = Measure(
    keys=("lat_p50",), title="Pickup by an idle worker, median", unit="ms", more_is_better=False, form=".2f"
)
PICKUP99 = Measure(
    keys=("lat_p99",), title="Pickup by an idle worker, p99", unit="ms", more_is_better=False, form=".2f"
)
COMMIT50 = Measure(
    keys=("commit_p50",), title="Pickup after the commit, median", unit="ms", more_is_better=False, form=".2f"
)
COMMIT99 = Measure(
    keys=("commit_p99",), title="Pickup after the commit, p99", unit="ms", more_is_better=False, form=".2f"
)
WHOLE50 = Measure(
    keys=("call_p50",),
    title="Enqueue and pickup together, median",
    unit="ms",
    more_is_better=False,
    form=".2f",
)
WHOLE99 = Measure(
    keys=("call_p99",), title="Enqueue and pickup together, p99", unit="ms", more_is_better=False, form=".2f"
)
WAL = Measure(
    keys=("drain1_wal_per_job",), title="WAL written for a drained job", unit="bytes", more_is_better=False
)
KILLED = Measure(
    keys=("drain1_killed_per_job",), title="Rows updated and deleted for a drained job", unit="rows",
    more_is_better=False, form=".2f", compared=False,
)  # fmt: skip
SUSTAINED = Measure(
    keys=("sustained_per_s",), title="Producer and one worker at once, at a held depth", unit="jobs/s"
)
OFFERED50 = Measure(
    keys=("offered_p50",), title="Due to begun at an offered rate, median", unit="ms", more_is_better=False,
    form=".2f",
)  # fmt: skip
OFFERED99 = Measure(
    keys=("offered_p99",), title="Due to begun at an offered rate, p99", unit="ms", more_is_better=False,
    form=".2f",
)  # fmt: skip
ONE_ROW = Measure(keys=("one_row_per_s",), title="A handler that inserts one row", unit="jobs/s")
ONE_ROW_WAL = Measure(
    keys=("one_row_wal_per_job",), title="WAL written for such a job", unit="bytes", more_is_better=False
)

OURS = "faultline"
OURS_LEAN = "faultline keep=nothing"


@dataclass(frozen=True)
class Run:
    """One run's JSON, and questions to it."""

    data: dict[str, Any]

    @cached_property
    def systems(self) -> list[str]:
        return list(self.data["throughput"])

    def is_ours(self, system: str) -> bool:
        return system.startswith(OURS)

    def backend(self, system: str) -> str:
        return str(self.data["meta"][system]["backend"])

    def values(self, system: str, measure: Measure) -> list[float]:
        rows: list[Row] = self.data["throughput"].get(system, [])
        return [row[key] for key in measure.keys for row in rows if row.get(key) is not None]

    def spread(self, system: str, measure: Measure) -> Spread | None:
        return Spread.of(self.values(system, measure))

    def ranked(self, measure: Measure, systems: Sequence[str] | None = None) -> list[tuple[str, Spread]]:
        """Every system that was measured, the best first."""
        wanted = self.systems if systems is None else systems
        found = [(name, spread) for name in wanted if (spread := self.spread(name, measure))]
        return sorted(found, key=lambda pair: pair[1].middle, reverse=measure.more_is_better)

    def best_peer(self, measure: Measure, backend: str | None = None) -> str | None:
        """The peer with the best median, of all or of one backend."""
        peers = [name for name in self.systems if not self.is_ours(name)]
        ranked = self.ranked(measure, [p for p in peers if backend in (None, self.backend(p))])
        return ranked[0][0] if ranked else None

    def ratio(self, measure: Measure, system: str, base: str) -> Spread | None:
        """How often `base` goes into `system`: of the medians, and the extremes of the single repeats."""
        ours, theirs = self.values(system, measure), self.values(base, measure)
        if not ours or not theirs or min(theirs) <= 0:
            return None
        each = [mine / other for mine, other in zip(ours, theirs, strict=False)]
        return Spread(statistics.median(ours) / statistics.median(theirs), min(each), max(each))

    def rows(self) -> list[tuple[str, int, Row]]:
        """Every system's row of every repeat, counted from one."""
        return [
            (system, number, row)
            for system, rows in self.data["throughput"].items()
            for number, row in enumerate(rows, start=1)
        ]
