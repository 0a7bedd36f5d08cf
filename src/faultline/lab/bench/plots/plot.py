"""What a plot shows, as data: which figures against which. `drawing` makes pictures of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One point a case: how a figure grows with what was varied."""

    name: str
    title: str
    x: str
    y: tuple[str, ...]
    y_label: str = ""
    """For the axis, where several figures share it."""
    names: tuple[str, ...] = ()
    """Of the figures, where their headings do not do."""
    by: str = ""
    """One line for each value of this figure."""
    x_log: bool = False
    y_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One group of bars for each value of `x`, side by side for each value of `by`."""

    name: str
    title: str
    x: str
    y: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """A gauge over time, one line a case."""

    name: str
    title: str
    y: str
    y_log: bool = False


Plot = Curve | Bars | OverTime
