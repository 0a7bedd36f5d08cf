"""What an audit found: a verdict for each invariant, its counterexamples, and what is only remarkable."""

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
"""The names, the same words everywhere, and what each of them says."""


@dataclass(frozen=True, slots=True)
class Example:
    """One row that contradicts an invariant: which job, by which check, in one sentence."""

    job_id: int
    check: str
    told: str

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.told}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One invariant: whether it holds, how many rows were looked at, and the first that contradict it.

    `found` counts all that contradict it, `examples` has the first of them. `remarks` are what may be a fault
    and may have a harmless reason, such as a clock that was set back: they break nothing.
    """

    name: str
    holds: bool
    looked_at: int
    examples: tuple[Example, ...] = ()
    found: int = 0
    remarks: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything an audit found, at one moment of the database.

    `complete` is false where the time ran out: then what was not looked at may hold or not, and the report
    as a whole does not.
    """

    verdicts: tuple[Verdict, ...]
    moment: datetime
    complete: bool = True
    standby: bool = False

    @property
    def holds(self) -> bool:
        return self.complete and not self.violated

    @property
    def violated(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.holds)

    def __getitem__(self, name: str) -> Verdict:
        """The verdict of that name: `report["NoZombie"]`."""
        return {verdict.name: verdict for verdict in self.verdicts}[name]

    def __str__(self) -> str:
        """Every counterexample, a line each; made for the message of a failing test."""
        lines = [
            f"{verdict.name} is violated: {example}"
            for verdict in self.violated
            for example in verdict.examples
        ]
        if not self.complete:
            lines.append("the time ran out before everything was looked at")
        return "\n".join(lines) or "everything holds"
