"""The verdict: each promise kept or broken, as one SQL statement finds it. Python only shows what it says."""

from dataclasses import dataclass
from typing import Any

import psycopg
from rich.table import Table
from rich.text import Text

from faultline.drills.stage import source


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise, whether it was kept, and what tells so."""

    promise: str
    kept: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a drill found. A drill that did not come to its end has kept nothing."""

    findings: tuple[Finding, ...]

    @property
    def kept(self) -> bool:
        return bool(self.findings) and all(finding.kept for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.kept)

    def and_stuck(self, why: str) -> "Verdict":
        """The same verdict on a drill that could not be played to its end."""
        return Verdict((*self.findings, Finding("the drill came to its end", False, why)))


def judge(conn: psycopg.Connection[Any], drill: str, **about: Any) -> Verdict:
    """Ask the database for the verdict on one run of a drill."""
    rows = conn.execute(source(drill), about).fetchall()
    return Verdict(tuple(Finding(*row) for row in rows))


def table(
    verdict: Verdict, note: str = "from ledger, refusals and effect rows, by one SQL statement"
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
    return shown
