"""Mutants of the budget of crashes: whose crash counts, and that it does."""

from proof.mutants.mutant import Mutant, sql

INNOCENTS = "tests/promises/test_06_no_innocent_is_buried.py"
THIRD = f"{INNOCENTS}::test_a_job_dies_of_its_third_crash_alone_and_the_signature_is_kept"

ALONE_IN_PUT_BACK = "case when put_back.alone then"

MUTANTS = (
    Mutant(
        "a crash alone is not counted", "G9", THIRD,
        (sql("put_back", ALONE_IN_PUT_BACK, "case when false then"),),
    ),
    Mutant(
        "a budget of crashes is never used up", "G9", THIRD,
        (sql("crash", "when times >= crash.max_crashes then", "when false then"),),
    ),
    Mutant(
        "a crash beside others counts as one alone", "G9",
        f"{INNOCENTS}::test_crashes_beside_others_bury_nobody",
        (
            sql("crash", "if crash.alone then", "if true then"),
            sql("crash", "coalesce(crash.alone, false)", "true"),
        ),
    ),
    Mutant(
        "a reap counts as a crash alone", "G9",
        f"{INNOCENTS}::test_a_worker_that_died_is_no_crash_alone",
        (sql("put_back", ALONE_IN_PUT_BACK, "case when put_back.alone or put_back.crashed then"),),
    ),
    Mutant(
        "a promotion forgets the crashes alone", "G9", THIRD,
        (sql("promote", "taken.crashes_alone", "null"),),
    ),
    Mutant(
        "giving back forgets the crashes alone", "G9",
        f"{INNOCENTS}::test_crashes_alone_are_remembered_wherever_the_job_goes",
        (sql("line_up", "job.crashes_alone)", "null)"),),
    ),
)  # fmt: skip
