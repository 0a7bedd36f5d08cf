"""What `make model` found: rows for a table, for JSON, and the one verdict."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

REPORT: Final = Path("build/proof/model.json")


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """One thing that was checked: what had to be found, and what was."""

    kind: str
    name: str
    expected: str
    found: str
    looked_at: int
    """States of the model, or histories."""
    seconds: float

    @property
    def good(self) -> bool:
        # A check that looked at nothing has found nothing.
        return self.found == self.expected and self.looked_at > 0


def table(lines: Sequence[ModelCheck]) -> Table:
    """The table for people: a line a check."""
    shown = Table(box=None, padding=(0, 1), title="Model", title_justify="left", title_style="bold")
    for heading in ("as expected", "kind", "config", "expected", "found"):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("looked at", justify="right", no_wrap=True)
    shown.add_column("seconds", justify="right", no_wrap=True)
    for line in lines:
        word = Text("yes", "green") if line.good else Text("WRONG", "bold red")
        found = Text(line.found, "default" if line.good else "bold red")
        shown.add_row(
            word, line.kind, line.name, line.expected, found, f"{line.looked_at:,}", f"{line.seconds:.1f}"
        )
    return shown


def write(lines: Sequence[ModelCheck], seconds: float, skipped: str, path: Path = REPORT) -> None:
    """The same as JSON, with the moment and how long all of it took."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "good": not skipped and all(line.good for line in lines),
        "skipped": skipped,
        "seconds": round(seconds, 1),
        "lines": [{**asdict(line), "seconds": round(line.seconds, 2), "good": line.good} for line in lines],
    }
    path.write_text(json.dumps(told, indent=2) + "\n")
