"""The oracle: one checker for every invariant, used by the proof suites and on live databases."""

from faultline.audit.examine import examine
from faultline.audit.ids import read_ids
from faultline.audit.report import INVARIANTS, Example, Report, Verdict
from faultline.audit.walk import Effects

__all__ = ["INVARIANTS", "Effects", "Example", "Report", "Verdict", "examine", "read_ids"]
