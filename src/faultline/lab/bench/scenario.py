"""A scenario: a name, its sizes, how its cases are run, what its table and its plots show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from faultline.lab.bench.case import CaseResult, CaseRunner
from faultline.lab.bench.plots.plot import Plot

Cases = Callable[[CaseRunner, Any], Iterator[CaseResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchScenario:
    """One thing to measure. `full` and `quick` are sizes: the same fields, other numbers."""

    name: str
    summary: str
    full: Any
    quick: Any
    cases: Cases
    columns: str
    """The figures of its table, by their keys."""
    plots: tuple[Plot, ...] = field(default=())
    every: float = 1.0
    """Seconds from one sample to the next, at full size."""
