"""Mutants of schedules: each occurrence once, and the higher release."""

from proof.explorer.mutants.mutant import ExplorerMutant
from proof.explorer.rewriting import Edit

# The key of an occurrence would catch what the comparison lets through: it is taken away with it.
NO_KEY: Edit = (
    "fire",
    "an_occurrence_is_enqueued_once do nothing",
    "an_occurrence_is_enqueued_once do update set job_id = excluded.job_id",
)

MUTANTS = (
    ExplorerMutant(
        "a schedule is fired whatever its next time is",
        (
            ("fire", "where mine.next_at = asked.due and mine.revision = asked.revision and ", "where "),
            NO_KEY,
        ),
        "two watchdogs and a schedule",
        "OneEffect",
    ),
    ExplorerMutant(
        "a schedule is compared without a lock",
        (("fire", "    for no key update of mine skip locked);", "  );"), NO_KEY),
        "two watchdogs and a schedule",
        "OneEffect",
    ),
    ExplorerMutant(
        "a watchdog waits for a schedule that another fires",
        (("fire", "for no key update of mine skip locked);", "for no key update of mine);"),),
        "two watchdogs and a schedule",
        "Drains",
    ),
    ExplorerMutant(
        "a lower release changes schedules",
        (("sync_schedules", "  if ours < highest then", "  if false then"),),
        "two releases",
        "TerminalStays",
    ),
    ExplorerMutant(
        "two releases do not take turns",
        (
            (
                "sync_schedules",
                "where known.app = sync_schedules.app for no key update;",
                "where known.app = sync_schedules.app;",
            ),
        ),
        "two releases",
        "TerminalStays",
    ),
)
