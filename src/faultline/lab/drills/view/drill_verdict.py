"""The verdict: each promise kept or broken, as one SQL statement finds it. Python only shows what it says."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import psycopg
from rich.table import Table
from rich.text import Text

from faultline.lab.drills.stage.drill_database import source


@dataclass(frozen=True, slots=True)
class PromiseFinding:
    """One promise, whether it was kept, and what tells so."""

    promise: str
    kept: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class DrillVerdict:
    """What a drill found. A drill that did not come to its end has kept nothing.

    A promise that no fault tried to break is not tested, and so not kept: a drill whose fault did not happen
    is void.
    """

    findings: tuple[PromiseFinding, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    """What had to happen at least once, and did not."""

    @property
    def kept(self) -> bool:
        return self.word == "kept"

    @property
    def word(self) -> Literal["kept", "BROKEN", "VOID"]:
        if self.broken or not self.findings:
            return "BROKEN"
        return "VOID" if self.unseen else "kept"

    @property
    def broken(self) -> tuple[PromiseFinding, ...]:
        return tuple(finding for finding in self.findings if not finding.kept)

    def and_stuck(self, why: str) -> "DrillVerdict":
        """The same verdict on a drill that could not be played to its end."""
        return replace(
            self, findings=(*self.findings, PromiseFinding("the drill came to its end", False, why))
        )

    def counted(self, counts: Mapping[str, int], must_see: Iterable[str]) -> "DrillVerdict":
        """The same verdict with how often each thing happened, and which of them had to and did not."""
        unseen = tuple(what for what in must_see if not counts.get(what))
        return replace(self, counts=dict(counts), unseen=unseen)


def judge(conn: psycopg.Connection[Any], drill: str, **about: Any) -> DrillVerdict:
    """Ask the database for the verdict on one run of a drill."""
    rows = conn.execute(source(drill), about).fetchall()
    return DrillVerdict(tuple(PromiseFinding(*row) for row in rows))


def count(conn: psycopg.Connection[Any], jobs: Sequence[int]) -> Counter[str]:
    """How often each thing happened to these jobs: leases by their end, refusals, effects, faults."""
    return Counter(dict(conn.execute(source("counts"), {"jobs": list(jobs)}).fetchall()))


def table(
    verdict: DrillVerdict, note: str = "from ledger, refusals and effect rows, by one SQL statement"
) -> Table:
    """The verdict for people: a line a promise, its evidence below it."""
    shown = Table(box=None, padding=(0, 1), show_header=False, title_justify="left", title_style="bold")
    shown.title = f"Verdict, {note}"
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for finding in verdict.findings:
        word = Text("kept", "bold green") if finding.kept else Text("BROKEN", "bold red")
        text = Text.assemble(
            (finding.promise, "default" if finding.kept else "bold red"), "\n", (finding.evidence, "dim")
        )
        shown.add_row(word, text)
    for what in verdict.unseen:
        shown.add_row(Text("VOID", "bold yellow"), Text(f"the fault did not happen: never seen, {what}"))
    return shown


def counts_line(verdict: DrillVerdict) -> str:
    """How often each thing happened, on one line."""
    return ", ".join(f"{what} {times}" for what, times in verdict.counts.items())
