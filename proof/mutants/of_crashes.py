"""Mutants of the suspects: whose crash counts, that it does, and where it can happen."""

from faultline.sql.columns import columns
from proof.mutants.mutant import Mutant, sql, worker

INNOCENTS = "tests/promises/test_06_no_innocent_is_buried.py"
SUSPECTS = "tests/worker/test_suspects.py"
P13 = "tests/worker/test_p13_no_process_to_be_had.py"

ALONE = "case when put_back.alone then"
DIES = f"{INNOCENTS}::test_a_job_dies_of_its_third_crash_alone_and_the_signature_is_kept"

MUTANTS = (
    Mutant("a crash alone is not counted", "G9", DIES, (sql("put_back", ALONE, "case when false then"),)),
    Mutant(
        "a budget of crashes is never used up", "G9", DIES,
        (sql("crash", "when times >= crash.max_crashes then", "when false then"),),
    ),
    Mutant(
        "a promotion forgets the crashes alone", "G9", DIES,
        (sql("promote", "taken.job_columns", columns("job_columns", "taken", crashes_alone="null")),),
    ),
    Mutant(
        "a crash beside others counts as one alone", "G9", f"{INNOCENTS}::test_crashes_beside_others_bury_no_job",
        (
            sql("crash", "if crash.alone then", "if true then"),
            sql("crash", "coalesce(crash.alone, false)", "true"),
        ),
    ),
    Mutant(
        "a reap counts as a crash alone", "G9", f"{INNOCENTS}::test_a_worker_that_died_is_no_crash_alone",
        (sql("put_back", ALONE, "case when put_back.alone or put_back.crashed then"),),
    ),
    Mutant(
        "giving back forgets the crashes alone", "G9",
        f"{INNOCENTS}::test_crashes_alone_are_remembered_wherever_the_job_goes",
        (sql("requeue", "moment, job.job_columns", "moment, " + columns("job_columns", "job", crashes_alone="null")),),
    ),
    Mutant(
        "a job that crashed runs beside others", "G9",
        f"{SUSPECTS}::test_handlers_of_every_kind_run_in_a_child_and_their_transactions_commit",
        (worker("execution/executor", "elif attempt.job.crashes and self.suspects.take(spec):", "elif False:"),),
    ),
    Mutant(
        "every child counts as a fresh one", "G9",
        f"{SUSPECTS}::test_a_warm_child_is_not_held_against_a_job_but_a_fresh_one_is",
        (worker("processes/child_handle", "return self.begun == 1", "return True"),),
    ),
    Mutant(
        "the dead process counts as an ordinary failure", "G9", f"{SUSPECTS}::test_a_task_may_say_how_often",
        (worker("execution/outcomes", "return _crashed(attempt, error, said, delay) or Failed(said, delay)", "return Failed(said, delay)"),),
    ),
    Mutant(
        "a process that dies is held against a job that it has not begun", "G9",
        "tests/worker/test_children_killed.py::test_a_process_that_dies_before_it_has_begun_a_job_costs_that_nothing",
        (worker("processes/child_handle", "self._began, self._cannot = False, None", "self._began, self._cannot = True, None"),),
    ),
    Mutant(
        "a job for which there was no process has failed", "G8",
        f"{P13}::test_the_job_is_given_back_waits_longer_each_time_and_runs_at_last",
        (worker("processes/child_pool", "return self._put_off(attempt, refused)", "raise"),),
    ),
)  # fmt: skip
