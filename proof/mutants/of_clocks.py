"""Mutants of what is taken for stopped, and of clocks that stand still or jump."""

from proof.mutants.mutant import Mutant, worker

BLOCKED = "tests/worker/test_blocked_loop.py"
PACEMAKER = "tests/worker/test_pacemaker.py"

MUTANTS = (
    Mutant(
        "a blocked loop is taken for a stopped worker", "G8",
        f"{BLOCKED}::test_a_blocked_loop_loses_none_of_its_neighbours",
        (worker("pulse", "return vital.state != TRACED and not in_frozen_cgroup(self.pid)", "return False"),),
    ),
    Mutant(
        "a worker in a frozen cgroup is beaten for", "G8",
        f"{PACEMAKER}::test_one_in_a_frozen_cgroup_has_none_unless_it_moves",
        (worker("pulse", "and not in_frozen_cgroup(self.pid)", ""),),
    ),
    Mutant(
        "a child whose job was cancelled runs on while the loop is blocked", "G4",
        f"{BLOCKED}::test_a_cancelled_child_is_ended_while_the_loop_is_blocked",
        (worker("guardian", "        end_group(pid, self.worker)", "        pass"),),
    ),
    Mutant(
        "a child that the pacemaker ended is taken for a crash of its job", "G9",
        f"{BLOCKED}::test_a_child_that_the_pacemaker_ended_is_no_crash_of_its_job",
        (worker("children", "and not (hand.settled or hand.lost):", "and False:"),),
    ),
    Mutant(
        "a process that has a child's old number is killed", "G8",
        f"{BLOCKED}::test_a_process_that_the_worker_did_not_start_is_left_alone",
        (worker("guardian", "if _is_group_of(pid, parent):", "if True:"),),
    ),
    Mutant(
        "a worker that woke with its pacemaker loses its children at once", "G8",
        f"{BLOCKED}::test_while_the_loop_turns_it_ends_its_children_itself",
        (worker("guardian", "if self._still < STILL_LOOKS:", "if False:"),),
    ),
)  # fmt: skip
