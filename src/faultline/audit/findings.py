"""Notes: the answers of the checks so far, bounded, and the report made of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from faultline.audit.invariants import AuditCheck
from faultline.audit.report import INVARIANTS, AuditReport, AuditVerdict, Counterexample

EXAMPLES_MAX: Final = 20
"""The bound on the kept counterexamples of an invariant; all are counted."""


class AuditFindings:
    """Gathers the answers during the walk."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._examples: dict[str, list[Counterexample]] = defaultdict(list)
        self._remarks: dict[str, list[Counterexample]] = defaultdict(list)
        self._asked: dict[str, set[str]] = defaultdict(set)

    def write(self, check: AuditCheck, answer: Iterable[tuple[int, str, bool]]) -> None:
        """Note the answer of one check for one range; an empty one is an answer too."""
        self._asked[check.invariant].add(check.over)
        for job_id, told, sure in answer:
            kept = self._examples if sure else self._remarks
            self._found[check.invariant] += sure
            if len(kept[check.invariant]) < EXAMPLES_MAX:
                kept[check.invariant].append(Counterexample(job_id, check.name, told))

    def report(self, moment: datetime, *, complete: bool, standby: bool) -> AuditReport:
        verdicts = tuple(self._verdict(name) for name in INVARIANTS)
        return AuditReport(verdicts, moment, complete, standby)

    def _verdict(self, name: str) -> AuditVerdict:
        return AuditVerdict(
            name,
            holds=not self._found[name],
            looked_at=sum(self.looked[over] for over in self._asked[name]),
            examples=tuple(self._examples[name]),
            found=self._found[name],
            remarks=tuple(self._remarks[name]),
        )
