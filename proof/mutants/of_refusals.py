"""Mutants of what a worker does when the database answers and refuses, or a line to it is dead."""

from proof.mutants.mutant import Mutant, worker

REFUSED = "tests/worker/test_refused_calls.py"

MUTANTS = (
    Mutant(
        "a success that cannot be recorded is recorded as a failure",
        "G10",
        f"{REFUSED}::test_a_success_waits_for_the_right_to_record_it",
        (
            worker(
                "settlement/settle",
                "return outcome.result is not None and isinstance(trouble, BadDocument)",
                "return True",
            ),
            worker("settlement/settler", "            if is_of_all(trouble):\n", "            if False:\n"),
        ),
    ),
    Mutant(
        "a success with a result is a failure where a row refuses it",
        "G10",
        f"{REFUSED}::test_no_error_of_recording_it_makes_a_success_a_failure",
        (
            worker(
                "settlement/settler", "(outcome, error) or is_of_a_bound(error):", "(outcome, error) or True:"
            ),
        ),
    ),
    Mutant(
        "a refused claim is the worker's end",
        "G10",
        f"{REFUSED}::test_a_worker_outlives_rights_that_are_revoked",
        (worker("claiming/claimer", "claim.ask, refusals=True", "claim.ask"),),
        red_by=("PermissionDenied",),
    ),
    Mutant(
        "claims go on while nothing can be recorded",
        "G10",
        f"{REFUSED}::test_a_success_waits_for_the_right_to_record_it",
        (worker("settlement/settler", "        self.state.hold_back(WHY_HELD_BACK, TRY_ONE_AFTER)\n", ""),),
    ),
    Mutant(
        "claims go on while no lease can be renewed",
        "G10",
        f"{REFUSED}::test_a_lease_that_cannot_be_renewed_costs_no_attempt_and_is_not_taken_again_at_once",
        (worker("heartbeat/heartbeat_watch", "            self.state.hold_back(WHY)\n", ""),),
    ),
    Mutant(
        "a transaction whose success cannot be recorded has failed",
        "G10",
        f"{REFUSED}::test_a_transaction_whose_success_cannot_be_recorded_has_not_failed",
        (
            worker("transactions/transaction", "if not self._records_any():", "if False:"),
            worker("transactions/transaction", "if not await self._arecords_any():", "if False:"),
        ),
    ),
    Mutant(
        "a worker that ends on a bug keeps its leases",
        "G10",
        f"{REFUSED}::test_a_worker_that_ends_on_a_bug_gives_its_leases_back",
        (worker("worker", "            await self._let_go()\n", ""),),
    ),
    Mutant(
        "a handler that lost its lease says goodbye over a dead line first",
        "G3",
        "tests/worker/test_dead_lines.py::test_a_handler_in_its_block_gets_out_though_the_line_is_dead",
        (worker("attempt", "                self.cut()\n", "                pass\n"),),
    ),
    Mutant(
        "a worker without a database uses up the attempts of jobs that need one",
        "G10",
        "tests/worker/test_backend.py"
        "::test_job_transaction_without_a_database_costs_no_attempt_and_is_told_with_the_remedy",
        (worker("execution/outcomes", "if isinstance(error, NoDatabase):", "if False:"),),
    ),
    Mutant(
        "jobs of another app are claimed again and again",
        "G13",
        "tests/worker/test_foreign_tasks.py::test_two_apps_on_one_queue_put_off_none_of_each_others_jobs",
        (worker("claiming/claimer", ", except_tasks=left", ""),),
    ),
    Mutant(
        "jobs of another app are put off",
        "G13",
        "tests/worker/test_foreign_tasks.py::test_two_apps_on_one_queue_put_off_none_of_each_others_jobs",
        (
            worker(
                "settlement/settler",
                "pause = NO_PAUSE if self.state.unfit.leave(attempt.job.task) else outcome.delay",
                "pause = outcome.delay",
            ),
        ),
    ),
)
