"""The report of a run: JSON for programs, one page of HTML for people, a table for the terminal."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from proof.nemesis.run import Outcome


def as_json(outcome: Outcome) -> dict[str, Any]:
    told = asdict(outcome)
    return {"verdict": outcome.verdict, "never": outcome.never, **told}


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Put both into a folder, named by seed; answers where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"nemesis-{outcome.wanted.seed}" + (f"-{outcome.wanted.mutant}" if outcome.wanted.mutant else "")
    data = folder / f"{name}.json"
    data.write_text(json.dumps(as_json(outcome), indent=1) + "\n")
    return [data]


def table(outcome: Outcome) -> Table:
    shown = Table(box=None, padding=(0, 1), title_justify="left", title_style="bold")
    shown.title = f"{len(outcome.struck)} faults, {sum(s.missed for s in outcome.struck)} of them missed"
    for column in ("", "invariant", "looked at", "what it says"):
        shown.add_column(column, justify="right" if column == "looked at" else "left")
    for finding in outcome.findings:
        word = Text("kept", "green") if finding.holds else Text("BROKEN", "bold red")
        says = "\n".join((finding.says, *finding.examples))
        shown.add_row(word, finding.name, f"{finding.looked_at:,}", says)
    for name, count in outcome.sometimes.items():
        shown.add_row(Text("seen" if count else "NEVER", "green" if count else "bold red"), "sometimes", f"{count:,}", name)
    return shown
