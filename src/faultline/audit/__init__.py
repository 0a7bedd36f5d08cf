"""The oracle: one checker for every invariant, used by the proof suites and on live databases."""

from faultline.audit.examine import Effects, examine
from faultline.audit.report import INVARIANTS, Example, Report, Verdict

__all__ = ["INVARIANTS", "Effects", "Example", "Report", "Verdict", "examine"]
