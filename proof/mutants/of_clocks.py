"""Mutants of what is taken for stopped, and of clocks that stand still or jump."""

from proof.mutants.mutant import Mutant, Patch, sql, worker

OUTAGE = "tests/promises/test_06_an_outage_is_not_a_crash.py"
STEPS = "tests/sql/test_clock_steps.py"
STALLS = "tests/worker/test_loop_stalls.py"
BLOCKED = "tests/worker/test_blocked_loop.py"
PACEMAKER = "tests/worker/test_pacemaker.py"

MUTANTS = (
    Mutant(
        "retries and snoozes stay where they are as the clock is set back", "G8",
        "tests/sql/test_clock_steps.py::test_set_back_what_waits_for_its_next_attempt_waits_no_longer",
        (sql("clock_set_back", "greatest(job.run_at - clock_set_back.step, clock_set_back.moment)", "job.run_at"),),
    ),
    Mutant(
        "a blocked loop is taken for a stopped worker", "G8",
        f"{BLOCKED}::test_a_blocked_loop_loses_none_of_its_neighbours",
        (worker("heartbeat/liveness", "return vital.state != TRACED and not in_frozen_cgroup(self.pid)", "return False"),),
    ),
    Mutant(
        "a worker in a frozen cgroup is beaten for", "G8",
        f"{PACEMAKER}::test_one_in_a_frozen_cgroup_has_none_unless_it_moves",
        (worker("heartbeat/liveness", "and not in_frozen_cgroup(self.pid)", ""),),
    ),
    Mutant(
        "a child whose job was cancelled runs on while the loop is blocked", "G4",
        f"{BLOCKED}::test_a_cancelled_child_is_ended_while_the_loop_is_blocked",
        (worker("heartbeat/child_guard", "        end_group(pid, self.worker)", "        pass"),),
    ),
    Mutant(
        "a child that the pacemaker ended is taken for a crash of its job", "G9",
        f"{BLOCKED}::test_a_child_that_the_pacemaker_ended_is_no_crash_of_its_job",
        (worker("processes/child_pool", "and not (attempt.phase is COMMITTED or attempt.lost):", "and False:"),),
    ),
    Mutant(
        "a process that has a child's old number is killed", "G8",
        f"{BLOCKED}::test_a_process_that_the_worker_did_not_start_is_left_alone",
        (worker("heartbeat/child_guard", "if _is_group_of(pid, parent):", "if True:"),),
    ),
    Mutant(
        "a worker that woke with its pacemaker loses its children at once", "G8",
        f"{BLOCKED}::test_while_the_loop_turns_it_ends_its_children_itself",
        (worker("heartbeat/child_guard", "if self._still < STILL_LOOKS:", "if False:"),),
    ),
    Mutant(
        "a handler that blocks the loop is not named", "G8",
        f"{STALLS}::test_a_handler_that_blocks_the_loop_is_named_with_its_stack",
        (worker("execution/loop_stalls", 'if self._seldom.allows("loop"):', "if False:"),),
    ),
    Mutant(
        "a thread is not told that its job is lost while the loop is blocked", "G4",
        f"{STALLS}::test_a_thread_learns_that_its_job_is_lost_while_the_loop_is_blocked",
        (worker("execution/loop_stalls", "                attempt.job._lose()", "                pass"),),
    ),
    Mutant(
        "a thread that stopped because it lost its job has succeeded", "G4",
        f"{STALLS}::test_a_thread_that_returns_early_for_that_has_not_succeeded",
        (worker("execution/loop_stalls", "                loop.call_soon_threadsafe(attempt.stop, why)\n", ""),),
    ),
    Mutant(
        "a gap is measured by the default lease alone", "G10",
        f"{OUTAGE}::test_after_a_gap_each_lease_has_its_own_time_again",
        (sql("reap", "and (calm or", "and (true or"),),
    ),
    Mutant(
        "the leases that a worker asks for are not recorded", "G10",
        f"{OUTAGE}::test_after_a_gap_each_lease_has_its_own_time_again",
        (sql("worker_seen", "lease_for = worker_seen.lease", "lease_for = null"),),
    ),
    Mutant(
        "a short gap ends what a long one before it began", "G10",
        f"{OUTAGE}::test_a_second_gap_does_not_end_what_the_first_began",
        (sql("round", "    slot := ", "    last.gap_at := '{}';\n    slot := "),),
    ),
    Mutant(
        "a gap puts off the reaping of leases that it cannot have hurt", "G8",
        f"{OUTAGE}::test_a_gap_that_is_short_for_a_lease_does_not_put_off_its_reaping",
        (sql("spared", "(spared.last).gap[slot.n] > spared.lease / 2", "true"),),
    ),
    Mutant(
        "a clock set forward takes live jobs at their deadlines", "G10",
        f"{STEPS}::test_set_forward_live_jobs_that_beat_are_not_taken",
        (sql("round", "perform faultline.shift_deadlines(passed, last.round_at);", "null;"),),
    ),
    Mutant(
        "a clock set back makes every lease longer", "G8",
        f"{STEPS}::test_set_back_a_killed_workers_jobs_come_back_within_a_lease",
        (sql("round", "perform faultline.clock_set_back(-back, at, at - round.tick * 3);", "null;"),),
    ),
    Mutant(
        "a clock set back moves a moment that a user chose", "G5",
        f"{STEPS}::test_set_back_a_moment_that_a_client_chose_stays",
        (sql("clock_set_back", "where job.token > 0 and job.run_at", "where job.run_at"),),
    ),
    Mutant(
        "a clock set back moves what was measured since", "G5",
        f"{STEPS}::test_set_back_a_claim_of_the_new_clock_keeps_its_lease_and_deadline",
        (sql("clock_set_back", "and job.claimed_at not between", "or job.claimed_at not between"),),
    ),
    Mutant(
        "a lease that a beat has locked in the step lasts as long as the step", "G8",
        f"{STEPS}::test_what_is_locked_for_a_moment_of_the_step_is_moved_too",
        (sql("clock_set_back", "for turn in 1 .. 40 loop", "for turn in 1 .. 1 loop"),),
    ),
    Mutant(
        "a watchdog that stood still tells of a clock that was set", "G5",
        "tests/watchdog/test_steps.py::test_our_own_standing_still_is_no_step",
        (Patch("watchdog/clock_steps.py", "if made.last_at is not None and", "if False and"),),
    ),
)  # fmt: skip
