"""What a run found: the one value that verdict, page and data are made of."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from proof.nemesis.arena import Wanted
from proof.nemesis.oracle import Finding
from proof.nemesis.storm import Struck
from proof.nemesis.watch import Sample


@dataclass
class Outcome:
    """Everything a run found; the report is made of it."""

    wanted: Wanted
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    phases: list[tuple[str, float, float]] = field(default_factory=list)
    struck: list[Struck] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    sometimes: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.holds]

    @property
    def never(self) -> list[str]:
        """What must happen at least once, and did not."""
        return [name for name, count in self.sometimes.items() if not count]

    @property
    def verdict(self) -> str:
        """`broken` if a finding is, `void` if too little happened for a verdict, else `kept`."""
        return "broken" if self.broken else "void" if self.never else "kept"
