"""The checks: a SQL file each, with the invariant it keeps watch over and what it looks at."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal

Over = Literal["jobs", "entries", "running", "successes", "keys", "effects", "acknowledged"]
"""What a check looks at; how many there were is told beside its verdict."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the database: the rows it answers with contradict its invariant."""

    name: str
    invariant: str
    over: Over


BY_RANGE: Final = (
    Check("a_success_has_the_newest_token", "NoZombie", "successes"),
    Check("a_success_had_a_lease", "NoZombie", "successes"),
    Check("a_job_succeeds_once", "OneEffect", "successes"),
    Check("a_job_stands_in_one_place", "OwnerIsOne", "jobs"),
    Check("a_lease_is_whole", "OwnerIsOne", "jobs"),
    Check("a_lease_ends_once", "OwnerIsOne", "entries"),
    Check("leases_follow_each_other", "OwnerIsOne", "entries"),
    Check("an_ended_job_stays_ended", "TerminalStays", "jobs"),
    Check("a_dead_job_stays_dead", "TerminalStays", "jobs"),
    Check("a_token_is_given_once", "TokenGrows", "entries"),
    Check("a_token_is_the_newest", "TokenGrows", "jobs"),
    Check("a_token_was_issued", "TokenGrows", "entries"),
    Check("an_open_job_is_somewhere", "NothingLost", "entries"),
    Check("a_job_has_a_lane", "NothingLost", "jobs"),
    Check("attempts_and_crashes_stay_in_budget", "WithinBudget", "jobs"),
    Check("entries_follow_each_other", "LedgerReplays", "entries"),
    Check("a_row_is_what_the_ledger_says", "LedgerReplays", "jobs"),
    Check("a_job_keeps_its_words", "LedgerReplays", "jobs"),
    Check("nothing_runs_past_its_lease", "Drains", "running"),
    Check("what_is_due_is_lined_up", "Drains", "jobs"),
)
"""Asked once for each range of job ids, so that a big ledger needs no more memory than a small one."""

OF_KEYS: Final = (Check("a_living_key_names_a_job", "NothingLost", "keys"),)
OF_ACKNOWLEDGED: Final = (Check("an_acknowledged_job_is_somewhere", "NothingLost", "acknowledged"),)

OF_EFFECTS: Final = (
    Check("an_effect_is_its_owners", "NoZombie", "effects"),
    Check("an_effect_is_there_once", "OneEffect", "effects"),
    Check("an_effect_came_with_a_success", "OneEffect", "effects"),
    Check("a_success_left_its_effect", "OneEffect", "effects"),
    Check("an_effect_has_a_job", "NothingLost", "effects"),
)
"""Asked of a table of the user's, whose every row was written under a lease."""


def every() -> Iterator[Check]:
    """All of them."""
    yield from (*BY_RANGE, *OF_KEYS, *OF_ACKNOWLEDGED, *OF_EFFECTS)


@cache
def source(name: str) -> str:
    """The text of a SQL file beside this module."""
    return files("faultline.audit").joinpath("sql", f"{name}.sql").read_text()
