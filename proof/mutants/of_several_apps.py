"""Mutants of several apps on one queue: who claims what, and what becomes of tasks that no worker knows."""

from proof.mutants.mutant import Mutant, Patch, sql, worker

RULES = "tests/sql/test_unknown_tasks.py"
APPS = "tests/worker/test_several_apps.py"
LOOKS = "tests/worker/test_floor_looks.py"

MUTANTS = (
    Mutant(
        "a claim takes jobs of tasks that its worker does not know", "G13",
        f"{RULES}::test_a_claim_takes_only_tasks_that_its_worker_named",
        (sql("claim", "        and (known is null or known ? job.task)\n", ""),),
    ),
    Mutant(
        "a worker does not name its tasks", "G13",
        f"{APPS}::test_a_mistyped_task_is_told_once_with_who_may_know_it",
        (worker("postgres_backend", "        if tasks is not None:\n", "        if False:\n"),),
    ),
    Mutant(
        "tasks of a module that is imported later are never named", "G13",
        f"{APPS}::test_a_task_of_a_module_that_is_imported_later_is_claimed",
        (worker("claiming/known_tasks", "if len(self._tasks) == named:", "if True:"),),
    ),
    Mutant(
        "a job of a task that no worker knows never dies", "G13",
        f"{RULES}::test_a_job_that_no_worker_knew_for_a_day_is_dead",
        (sql("unknown_tasks", "job.unknown_since < moment - interval '1 day'\n", "false\n"),),
    ),
    Mutant(
        "a job dies though a worker knew its task within the day", "G1",
        f"{RULES}::test_a_worker_that_knew_the_task_begins_the_day_anew",
        (sql("unknown_tasks", "worker.seen_at > job.unknown_since", "false"),),
    ),
    Mutant(
        "a job of an unknown task dies under the token of an earlier lease", "G8",
        f"{RULES}::test_a_job_that_ran_before_dies_under_a_lease_of_its_own",
        (sql("bury_unknown", "greatest(number, job.token + 1)", "job.token"),),
        red_by=("UniqueViolation", "DatabaseError"),
    ),
    Mutant(
        "the end of a wake-up is a worker of another app", "G13",
        "tests/grpc/test_excepted_tasks.py::test_a_job_of_another_app_comes_to_the_next_that_waits_and_knows_it",
        (Patch(
            "server/grpc/sessions/wait_queue.py",
            "not (waiter.except_tasks or waiter.kind is not None)", "not waiter.except_tasks",
        ),),
    ),
    Mutant(
        "another app's job hides the jobs behind it from the watchdog", "G13",
        "tests/watchdog/test_announcing.py::test_a_job_behind_one_that_stays_the_first_is_announced",
        (sql("first_free", "      order by job.pos desc\n", "      order by job.pos\n"),),
    ),
    Mutant(
        "a claim begins at a place that was not looked at again", "G1",
        f"{LOOKS}::test_a_place_counts_after_a_second_look",
        (worker("claiming/floor_looks", "sent >= self._marked_at + SETTLED_SECONDS", "True"),),
    ),
    Mutant(
        "a look that was filled passes what it did not reach", "G1",
        f"{LOOKS}::test_a_look_that_was_filled_says_nothing_of_what_it_did_not_reach",
        (worker("claiming/floor_looks", "        if is_full:", "        if False:"),),
    ),
)  # fmt: skip
