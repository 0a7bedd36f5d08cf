"""What an audit found: a verdict for each invariant, its counterexamples, and what is only remarkable."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

INVARIANTS: Final = (
    "NoZombie", "OneEffect", "OwnerIsOne", "TerminalStays", "TokenGrows", "NothingLost",
    "WithinBudget", "LedgerReplays", "Drains",
)  # fmt: skip
"""The names, the same words everywhere; `WithinBudget` and `LedgerReplays` are the oracle's O7 and O10."""


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
        return next(verdict for verdict in self.verdicts if verdict.name == name)

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
