"""What a run of the explorer found: a line a scenario, a verdict, and the same as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from proof.explorer.crew import News
from proof.explorer.exploring import Tally
from proof.explorer.mutants import MUTANTS
from proof.explorer.scenarios import SCENARIOS
from proof.explorer.telling import told


@dataclass
class ScenarioLine:
    """One scenario, with all its parts added up."""

    name: str
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0

    def add(self, news: News) -> None:
        assert news.tally is not None
        for count in ("orders", "turns", "waits", "refusals", "violations", "raced"):
            setattr(self.tally, count, getattr(self.tally, count) + getattr(news.tally, count))
        self.tally.endings |= news.tally.endings
        self.tally.first_broken = self.tally.first_broken or news.tally.first_broken
        self.seconds += news.seconds

    @property
    def is_void(self) -> bool:
        """Whether it never reached the outcome that it must show."""
        return SCENARIOS[self.name].sees_refusals and not self.tally.refusals

    def as_json(self) -> dict[str, Any]:
        broken = self.tally.first_broken
        return {
            "scenario": self.name,
            "orders": self.tally.orders,
            "turns": self.tally.turns,
            "waits": self.tally.waits,
            "refusals": self.tally.refusals,
            "endings": len(self.tally.endings),
            "violations": self.tally.violations,
            "raced": self.tally.raced,
            "void": self.is_void,
            "seconds": round(self.seconds, 2),
            "first_broken": list(told(broken)) if broken else None,
        }


@dataclass
class Findings:
    """All lines of a run."""

    lines: dict[str, ScenarioLine] = field(default_factory=dict)
    broken: dict[str, News] = field(default_factory=dict)
    """Of each scenario that broke something, the first part that did."""

    def add(self, news: News) -> None:
        if news.tally is not None:
            if news.tally.first_broken:
                self.broken.setdefault(news.part.scenario, news)
            self.lines.setdefault(news.part.scenario, ScenarioLine(news.part.scenario)).add(news)

    @property
    def orders(self) -> int:
        return sum(line.tally.orders for line in self.lines.values())

    @property
    def holds(self) -> bool:
        return not any(line.tally.violations or line.is_void for line in self.lines.values())

    def as_json(self, seconds: float, postgres: str) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "orders": self.orders,
            "seconds": round(seconds, 1),
            "postgres": postgres,
            "scenarios": [line.as_json() for line in self.lines.values()],
        }


def table(findings: Findings, seconds: float) -> Table:
    """A line a scenario, in the order of the scenarios."""
    drawn = Table(box=None, header_style="bold", pad_edge=False, show_footer=True)
    for heading in ("orders", "turns", "waits", "refusals", "endings", "violations", "seconds"):
        if heading == "orders":
            drawn.add_column("scenario", footer="in all")
        drawn.add_column(heading, justify="right", footer=_sum(findings, heading, seconds))
    for name in SCENARIOS:
        if name in findings.lines:
            drawn.add_row(*_cells(findings.lines[name]))
    return drawn


def _sum(findings: Findings, heading: str, seconds: float) -> str:
    if heading == "seconds":
        return f"{seconds:.0f}"
    if heading == "endings":
        return f"{sum(len(line.tally.endings) for line in findings.lines.values()):,}"
    return f"{sum(getattr(line.tally, heading) for line in findings.lines.values()):,}"


def _cells(line: ScenarioLine) -> list[Text | str]:
    tally = line.tally
    counts = (tally.orders, tally.turns, tally.waits, tally.refusals, len(tally.endings))
    verdict = "void" if line.is_void else f"{tally.violations:,}"
    bad = bool(tally.violations) or line.is_void
    return [
        line.name,
        *(f"{count:,}" for count in counts),
        Text(verdict, style="bold red" if bad else "green"),
        f"{line.seconds:.1f}",
    ]


def mutant_table(found: Sequence[News]) -> Table:
    """A line a mutant: which invariant it broke, and after how many orders."""
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    drawn.add_column("mutant")
    drawn.add_column("found in")
    drawn.add_column("breaks")
    drawn.add_column("orders", justify="right")
    for news in found:
        broken = broken_by(news)
        verdict = Text(", ".join(broken), "green") if is_found(news) else Text("SURVIVES", "bold red")
        orders = f"{news.tally.orders:,}" if news.tally else ""
        drawn.add_row(news.part.mutant, news.part.scenario, verdict, orders)
    return drawn


def broken_by(news: News) -> list[str]:
    """The invariants that a mutant broke in the first order that broke any."""
    order = news.tally.first_broken if news.tally else None
    return sorted({invariant for invariant, _ in order.broken}) if order else []


def is_found(news: News) -> bool:
    """Whether a mutant broke what it must break."""
    return MUTANTS[news.part.mutant].breaks in broken_by(news)


def mutant_as_json(news: News) -> dict[str, Any]:
    order = news.tally.first_broken if news.tally else None
    return {
        "mutant": news.part.mutant,
        "scenario": news.part.scenario,
        "must_break": MUTANTS[news.part.mutant].breaks,
        "broke": broken_by(news),
        "orders": news.tally.orders if news.tally else 0,
        "seconds": round(news.seconds, 2),
        "first_broken": list(told(order)) if order else None,
    }
