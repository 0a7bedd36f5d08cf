"""Mutants of the budget of crashes: whose crash counts, and that it does."""

from tests.promises import test_06_no_innocent_is_buried as innocents
from tests.promises.sabotage.mutant import Mutant

ALONE_IN_PUT_BACK = "case when put_back.alone then"

MUTANTS = [
    Mutant(
        "a crash alone is not counted",
        innocents.test_a_job_dies_of_its_third_crash_alone_and_the_signature_is_kept,
        (("put_back", ALONE_IN_PUT_BACK, "case when false then"),),
    ),
    Mutant(
        "a budget of crashes is never used up",
        innocents.test_a_job_dies_of_its_third_crash_alone_and_the_signature_is_kept,
        (("crash", "when times >= crash.max_crashes then", "when false then"),),
    ),
    Mutant(
        "a crash beside others counts as one alone",
        innocents.test_crashes_beside_others_bury_nobody,
        (
            ("crash", "if crash.alone then", "if true then"),
            ("crash", "coalesce(crash.alone, false)", "true"),
        ),
    ),
    Mutant(
        "a reap counts as a crash alone",
        innocents.test_a_worker_that_died_is_no_crash_alone,
        (("put_back", ALONE_IN_PUT_BACK, "case when put_back.alone or put_back.crashed then"),),
    ),
    Mutant(
        "a promotion forgets the crashes alone",
        innocents.test_a_job_dies_of_its_third_crash_alone_and_the_signature_is_kept,
        (("promote", "taken.crashes_alone", "null"),),
    ),
    Mutant(
        "giving back forgets the crashes alone",
        innocents.test_crashes_alone_are_remembered_wherever_the_job_goes,
        (("line_up", "job.crashes_alone)", "null)"),),
    ),
]
