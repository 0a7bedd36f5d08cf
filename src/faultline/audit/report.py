"""The report of an audit: a verdict for each invariant, its counterexamples, and remarks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

INVARIANTS: Final[Mapping[str, str]] = {
    "NoZombie": "only the newest lease of a job ever succeeded, and wrote",
    "OneEffect": "a job succeeded at most once, and its effect is there once",
    "OwnerIsOne": "a job stands in one place, under one whole lease or none",
    "TerminalStays": "what ended stayed ended; the dead came back by a replay only",
    "TokenGrows": "each lease of a job has a higher token than the one before",
    "NothingLost": "every job there is a trace of is waiting, running or ended",
    "WithinBudget": "no job was tried more often than it may be",
    "LedgerReplays": "the ledger, replayed, gives the tables",
    "Drains": "no lease stays past its end",
}
"""The invariants' names, the same everywhere, and their meanings."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One row that contradicts an invariant: the job, the check, and one sentence."""

    job_id: int
    check: str
    told: str

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.told}"


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """One invariant: whether it holds, the number of rows checked, and the first counterexamples.

    `found` counts all counterexamples, `examples` has the first of them. `remarks` are rows that may be a
    fault or may have a harmless reason, such as a clock that was set back: they break nothing.
    """

    name: str
    holds: bool
    looked_at: int
    examples: tuple[Counterexample, ...] = ()
    found: int = 0
    remarks: tuple[Counterexample, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything an audit found, at one moment of the database.

    `complete` is false where the time ran out: then the unchecked part may hold or not, and the report
    as a whole does not.
    """

    verdicts: tuple[AuditVerdict, ...]
    moment: datetime
    complete: bool = True
    standby: bool = False

    @property
    def holds(self) -> bool:
        return self.complete and not self.violated

    @property
    def violated(self) -> tuple[AuditVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.holds)

    def __getitem__(self, name: str) -> AuditVerdict:
        """The verdict of that name: `report["NoZombie"]`."""
        return {verdict.name: verdict for verdict in self.verdicts}[name]

    def __str__(self) -> str:
        """Every counterexample, a line each; for the message of a failing test."""
        lines = [
            f"{verdict.name} is violated: {example}"
            for verdict in self.violated
            for example in verdict.examples
        ]
        if not self.complete:
            lines.append("the time ran out before everything was looked at")
        return "\n".join(lines) or "everything holds"
