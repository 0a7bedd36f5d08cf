"""What `make properties` found, for people and as JSON."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

REPORT: Final = Path("build/proof/properties.json")
SOMETIMES: Final = (
    "claims", "stale writes refused", "leases reaped", "beats lost", "outcomes asked for", "keys found again",
    "keys in conflict", "acts refused", "cancel", "retry_now", "replay", "complete went through",
    "fail went through", "crash went through", "crash_alone went through", "snooze went through",
    "release went through", "bury went through", "cancel_claimed went through", "histories walked", "audits",
)  # fmt: skip
"""What must have happened in the machine's histories, or they prove nothing."""


@dataclass(frozen=True, slots=True)
class PropertyCheck:
    """One property, or one mutant and the property that must notice it."""

    kind: str
    name: str
    expected: str
    found: str
    seconds: float
    first: str = ""
    """The first line of what it failed with."""

    @property
    def good(self) -> bool:
        return self.found == self.expected


def table(lines: Sequence[PropertyCheck]) -> Table:
    """A line a check."""
    shown = Table(box=None, padding=(0, 1), title="Properties", title_justify="left", title_style="bold")
    for heading in ("", "what", "found"):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("seconds", justify="right")
    shown.add_column("by what", overflow="fold", max_width=60)
    for line in lines:
        word = Text("yes", "green") if line.good else Text("WRONG", "bold red")
        first = line.first if line.good else ""
        shown.add_row(word, line.name, line.found, f"{line.seconds:.1f}", Text(first[:60], "dim"))
    return shown


def never(counts: Counter[str]) -> list[str]:
    """What should have happened sometimes, and did not."""
    return [what for what in SOMETIMES if not counts[what]]


def write(lines: Sequence[PropertyCheck], counts: Counter[str], seconds: float, path: Path = REPORT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "good": all(line.good for line in lines) and not never(counts),
        "seconds": round(seconds, 1),
        "sometimes": dict(sorted(counts.items())),
        "lines": [{**asdict(line), "good": line.good} for line in lines],
    }
    path.write_text(json.dumps(told, indent=2) + "\n")
