"""The oracle: one checker for every invariant, used by the proof suites and on live databases."""

from faultline.audit.examine import examine
from faultline.audit.ids import read_ids
from faultline.audit.report import INVARIANTS, AuditReport, AuditVerdict, Counterexample
from faultline.audit.walk import Effects

__all__ = ["INVARIANTS", "Effects", "Counterexample", "AuditReport", "AuditVerdict", "examine", "read_ids"]
