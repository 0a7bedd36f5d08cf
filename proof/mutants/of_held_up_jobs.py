"""Mutants of the time that a job loses in its worker: to a late claim, or to a blocked loop."""

from proof.mutants.mutant import Mutant, Patch, worker

HELD_UP = "tests/worker/test_held_up_jobs.py"

MUTANTS = (
    Mutant(
        "a thread fails by a timeout that it was done before", "G10",
        f"{HELD_UP}::test_a_thread_that_returned_while_the_loop_was_blocked_has_succeeded",
        (worker("execution/executor", "if attempt.stopping in OUT_OF_TIME and thread.done() and not thread.cancelled():", "if False:"),),
    ),
    Mutant(
        "a handler begins with no time left, after a late claim", "G10",
        f"{HELD_UP}::test_a_claim_that_is_answered_late_costs_no_attempt",
        (worker("execution/executor", "if now - attempt.taken_at >= LATE_AFTER:", "if False:"),),
    ),
    Mutant(
        "a runner looks at no job's time behind a handler that blocked the loop", "G10",
        f"{HELD_UP}::test_a_blocked_loop_costs_no_job_that_was_claimed_with_the_blocker",
        (
            worker("attempt", "return seconds > (self.timeout_at - self.taken_at) * LOST_SHARE", "return False"),
            worker("attempt", "if self.is_excused or self.runner is None else StopReason.TIMEOUT", "if False else StopReason.TIMEOUT"),
        ),
    ),
    Mutant(
        "a coroutine fails by a timeout that its neighbour caused", "G10",
        f"{HELD_UP}::test_a_job_that_a_neighbour_kept_from_its_work_costs_no_attempt",
        (worker("execution/deadlines", "                attempt.is_excused = True\n", "                pass\n"),),
    ),
    Mutant(
        "a handler that blocks the loop past its timeout is begun again for ever", "G7",
        f"{HELD_UP}::test_a_handler_that_blocks_the_loop_past_its_own_timeout_has_failed",
        (worker("execution/deadlines", "attempt.job is not blocked.by\n", "blocked.by is not None\n"),),
    ),
    Mutant(
        "a job fails by its timeout while it waits for a thread", "G10",
        f"{HELD_UP}::test_a_handler_that_waits_for_a_thread_until_its_time_is_over_costs_no_attempt",
        (worker("execution/executor", "        attempt.is_excused = True\n        thread = ", "        thread = "),),
    ),
    Mutant(
        "a job fails by its timeout before its process has begun it", "G10",
        f"{HELD_UP}::test_a_job_that_a_neighbour_kept_from_its_work_costs_no_attempt",
        (worker("execution/executor", "attempt.handler, attempt.is_excused = HandlerState.IN_CHILD, True\n                outcome = await self.children", "attempt.handler = HandlerState.IN_CHILD\n                outcome = await self.children"),),
    ),
    Mutant(
        "a process that stood still after its round reaps by it", "G10",
        "tests/watchdog/test_announcing.py::test_a_process_that_stood_still_after_its_round_reaps_nothing_by_it",
        (Patch("watchdog/chores.py", "if made.mine and self._is_stale(answered_at - asked_at):", "if False:"),),
    ),
    Mutant(
        "a due job that is locked has a watchdog look fifty times a second", "G10",
        "tests/watchdog/test_announcing.py::test_a_due_job_that_is_locked_is_looked_at_ever_more_seldom",
        (Patch("watchdog/chores.py", "SOONEST if moved or next_due > 0 else min(self._soonest * 2, tick)", "SOONEST"),),
    ),
)  # fmt: skip
