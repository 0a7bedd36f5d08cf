"""The checks: a SQL file each, with the invariant that it checks and the rows that it reads."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal

Over = Literal["jobs", "entries", "running", "successes", "keys", "effects", "acknowledged"]
"""The rows that a check reads; their number is reported beside its verdict."""


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """One question to the database: the rows of the answer contradict its invariant."""

    name: str
    invariant: str
    over: Over


BY_RANGE: Final = (
    AuditCheck("a_success_has_the_newest_token", "NoZombie", "successes"),
    AuditCheck("a_success_had_a_lease", "NoZombie", "successes"),
    AuditCheck("a_job_succeeds_once", "OneEffect", "successes"),
    AuditCheck("a_job_stands_in_one_place", "OwnerIsOne", "jobs"),
    AuditCheck("a_lease_is_whole", "OwnerIsOne", "jobs"),
    AuditCheck("a_lease_ends_once", "OwnerIsOne", "entries"),
    AuditCheck("leases_follow_each_other", "OwnerIsOne", "entries"),
    AuditCheck("an_ended_job_stays_ended", "TerminalStays", "jobs"),
    AuditCheck("a_dead_job_stays_dead", "TerminalStays", "jobs"),
    AuditCheck("a_token_is_given_once", "TokenGrows", "entries"),
    AuditCheck("a_token_is_the_newest", "TokenGrows", "jobs"),
    AuditCheck("a_token_was_issued", "TokenGrows", "entries"),
    AuditCheck("an_open_job_is_somewhere", "NothingLost", "entries"),
    AuditCheck("a_job_has_a_lane", "NothingLost", "jobs"),
    AuditCheck("attempts_and_crashes_stay_in_budget", "WithinBudget", "jobs"),
    AuditCheck("entries_follow_each_other", "LedgerReplays", "entries"),
    AuditCheck("a_row_is_what_the_ledger_says", "LedgerReplays", "jobs"),
    AuditCheck("a_job_keeps_its_words", "LedgerReplays", "jobs"),
    AuditCheck("nothing_runs_past_its_lease", "Drains", "running"),
    AuditCheck("what_is_due_is_lined_up", "Drains", "jobs"),
)
"""Asked once for each range of job ids, so that a big ledger needs no more memory than a small one."""

OF_KEYS: Final = (AuditCheck("a_living_key_names_a_job", "NothingLost", "keys"),)
OF_ACKNOWLEDGED: Final = (AuditCheck("an_acknowledged_job_is_somewhere", "NothingLost", "acknowledged"),)

OF_EFFECTS: Final = (
    AuditCheck("an_effect_is_its_owners", "NoZombie", "effects"),
    AuditCheck("an_effect_is_there_once", "OneEffect", "effects"),
    AuditCheck("an_effect_came_with_a_success", "OneEffect", "effects"),
    AuditCheck("a_success_left_its_effect", "OneEffect", "effects"),
    AuditCheck("an_effect_has_a_job", "NothingLost", "effects"),
)
"""Asked of a table of the user's; each of its rows was written under a lease."""


def every() -> Iterator[AuditCheck]:
    """All checks."""
    yield from (*BY_RANGE, *OF_KEYS, *OF_ACKNOWLEDGED, *OF_EFFECTS)


@cache
def source(name: str) -> str:
    """The text of a SQL file beside this module."""
    return files("faultline.audit").joinpath("sql", f"{name}.sql").read_text()
