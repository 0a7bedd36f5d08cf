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
                "trouble",
                "return outcome.result is not None and isinstance(trouble, BadDocument)",
                "return True",
            ),
            worker("settler", "            if is_of_all(trouble):\n", "            if False:\n"),
        ),
    ),
    Mutant(
        "a success with a result is a failure where a row refuses it",
        "G10",
        f"{REFUSED}::test_no_error_of_recording_it_makes_a_success_a_failure",
        (worker("settler", "(outcome, error) or is_of_a_bound(error):", "(outcome, error) or True:"),),
    ),
    Mutant(
        "a refused claim is the worker's end",
        "G10",
        f"{REFUSED}::test_a_worker_outlives_rights_that_are_revoked",
        (worker("feeder", "lambda: claim.ask(call), refusals=True", "lambda: claim.ask(call)"),),
        red_by=("PermissionDenied",),
    ),
    Mutant(
        "claims go on while nothing can be recorded",
        "G10",
        f"{REFUSED}::test_a_success_waits_for_the_right_to_record_it",
        (worker("settler", "        self.shelf.hold_back(WHY_HELD_BACK, TRY_ONE_AFTER)\n", ""),),
    ),
    Mutant(
        "claims go on while no lease can be renewed",
        "G10",
        f"{REFUSED}::test_a_lease_that_cannot_be_renewed_costs_no_attempt_and_is_not_taken_again_at_once",
        (worker("beats", "            self.shelf.hold_back(WHY)\n", ""),),
    ),
    Mutant(
        "a transaction whose success cannot be recorded has failed",
        "G10",
        f"{REFUSED}::test_a_transaction_whose_success_cannot_be_recorded_has_not_failed",
        (
            worker("transaction", "if not self._records_any():", "if False:"),
            worker("transaction", "if not await self._arecords_any():", "if False:"),
        ),
    ),
    Mutant(
        "a worker that ends on a bug keeps its leases",
        "G10",
        f"{REFUSED}::test_a_worker_that_ends_on_a_bug_gives_its_leases_back",
        (worker("worker", "            await self._let_go(lines.singles)\n", ""),),
    ),
    Mutant(
        "a handler that lost its lease says goodbye over a dead line first",
        "G3",
        "tests/worker/test_dead_lines.py::test_a_handler_in_its_block_gets_out_though_the_line_is_dead",
        (worker("hand", "                self.cut()\n", "                pass\n"),),
    ),
    Mutant(
        "a worker without a database uses up the attempts of jobs that need one",
        "G10",
        "tests/worker/test_doors.py"
        "::test_job_transaction_without_a_database_costs_no_attempt_and_is_told_with_the_remedy",
        (worker("judge", "if isinstance(error, NoDatabase):", "if False:"),),
    ),
    Mutant(
        "jobs of another app are claimed again and again",
        "G13",
        "tests/worker/test_foreign_tasks.py::test_two_apps_on_one_queue_put_off_none_of_each_others_jobs",
        (worker("feeder", ", except_tasks=self.shelf.unfit.names(),", ","),),
    ),
    Mutant(
        "jobs of another app are put off",
        "G13",
        "tests/worker/test_foreign_tasks.py::test_two_apps_on_one_queue_put_off_none_of_each_others_jobs",
        (
            worker(
                "settler",
                "pause = NO_PAUSE if self.shelf.unfit.leave(hand.job.task) else outcome.delay",
                "pause = outcome.delay",
            ),
        ),
    ),
)
