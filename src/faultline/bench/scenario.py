"""A scenario: a name, its sizes, how its cases are run, what its table and its plots show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from faultline.bench.case import Found, Stand
from faultline.bench.plot import Plot

Cases = Callable[[Stand, Any], Iterator[Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
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
