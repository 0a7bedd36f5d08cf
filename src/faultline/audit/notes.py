"""Notes: what the checks have answered so far, bounded, and the report made of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from faultline.audit.checks import Check
from faultline.audit.report import INVARIANTS, Example, Report, Verdict

EXAMPLES_MAX: Final = 20
"""How many counterexamples of an invariant are kept; all are counted."""


class Notes:
    """Gathers answers while the walk goes on."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._examples: dict[str, list[Example]] = defaultdict(list)
        self._remarks: dict[str, list[Example]] = defaultdict(list)
        self._asked: dict[str, set[str]] = defaultdict(set)

    def write(self, check: Check, answer: Iterable[tuple[int, str, bool]]) -> None:
        """Note what one check found in one range; nothing is an answer too."""
        self._asked[check.invariant].add(check.over)
        for job_id, told, sure in answer:
            kept = self._examples if sure else self._remarks
            self._found[check.invariant] += sure
            if len(kept[check.invariant]) < EXAMPLES_MAX:
                kept[check.invariant].append(Example(job_id, check.name, told))

    def report(self, moment: datetime, *, complete: bool, standby: bool) -> Report:
        verdicts = tuple(self._verdict(name) for name in INVARIANTS)
        return Report(verdicts, moment, complete, standby)

    def _verdict(self, name: str) -> Verdict:
        return Verdict(
            name,
            holds=not self._found[name],
            looked_at=sum(self.looked[over] for over in self._asked[name]),
            examples=tuple(self._examples[name]),
            found=self._found[name],
            remarks=tuple(self._remarks[name]),
        )
