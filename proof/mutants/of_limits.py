"""Mutants of limits: each lets a limit, an order or a share be broken."""

from proof.mutants.mutant import Mutant, Patch, sql

OTHERS = "tests/sql/test_gates_and_others.py"
LIMITS = "tests/sql/test_limits.py"
RACES = "tests/promises/test_14_limits.py"
WORKER = "tests/worker/test_limits.py"

MUTANTS = (
    Mutant(
        "admissions take no lock", "G16", f"{RACES}::test_an_admission_that_is_not_committed_counts",
        (sql("admit", "where l.id = line.limit_id for no key update;", "where l.id = line.limit_id;"),),
    ),
    Mutant(
        "what is held is counted before the lock", "G16",
        f"{RACES}::test_an_admission_that_is_not_committed_counts",
        (
            sql("admit", "    if line.limit_id is distinct from own.id then\n",
                "    select * into own from faultline.limits as l where l.id = line.limit_id;\n"
                "    wanted := faultline.slots_left(own);\n"
                "    if true then\n"),
            sql("admit", "                    faultline.slots_left(own), faultline.slots_left(parent),",
                "                    wanted, faultline.slots_left(parent),"),
        ),
    ),
    Mutant(
        "only leased jobs hold a slot", "G16", f"{LIMITS}::test_an_admitted_job_holds_its_slot_before_it_is_claimed",
        (sql("slots_left", "job.pos >= counted.held_floor", "job.pos >= counted.held_floor and job.claim is not null"),),
    ),
    Mutant(
        "only leased jobs hold a slot of their key", "G16",
        f"{LIMITS}::test_an_admitted_job_holds_its_slot_of_its_key_before_it_is_claimed",
        (sql("admit_in_turn", "job.pos >= own.held_floor", "job.pos >= own.held_floor and job.claim is not null"),),
    ),
    Mutant(
        "the floor of what is held is too high", "G16", f"{LIMITS}::test_floors_hide_no_held_and_no_waiting_job",
        (sql("first_held", "then coalesce(first, newest) else", "then newest else"),),
    ),
    Mutant(
        "the floor of what waits hides a job that was committed late", "G16",
        f"{LIMITS}::test_a_job_that_is_committed_late_is_found_behind_the_floor",
        (sql("raise_limit_floors", "job.place < known.wait_floor)", "job.place < 0)"),),
    ),
    Mutant(
        "the clock is read before the lock", "G16",
        f"{LIMITS}::test_a_clock_that_is_read_before_the_lock_is_not_used",
        (
            sql("admit", "    exit when left_over <= 0;\n", "    exit when left_over <= 0;\n    moment := faultline.now();\n"),
            sql("admit", "    moment := faultline.now();   -- after", "    -- after"),
        ),
    ),
    Mutant(
        "a bucket waits for a clock that was set back", "G16",
        f"{LIMITS}::test_a_bucket_is_full_again_in_its_own_time_after_the_clock_was_set_back",
        (sql("filled_at", "least(greatest(known.full_at, moment), moment + known.burst / known.rate * interval '1 second')",
             "greatest(known.full_at, moment)"),),
    ),
    Mutant(
        "promote passes the gate", "G16", f"{LIMITS}::test_every_way_to_enqueue_ends_at_the_gate",
        (sql("promote", " and job.limit_id is null", ""),),
    ),
    Mutant(
        "a job that is released passes the gate", "G16", f"{LIMITS}::test_a_job_that_comes_back_waits_at_its_gate",
        (sql("requeue", "if job.limit_id is not null then", "if false then"),),
    ),
    Mutant(
        "a replayed job passes the gate", "G16", f"{LIMITS}::test_a_job_that_comes_back_waits_at_its_gate",
        (
            sql("raise_dead", "    where sound.limit_id is not null\n", "    where false\n"),
            sql("raise_dead", "    where sound.limit_id is null\n", "    where true\n"),
        ),
    ),
    Mutant(
        "a job at its gate can be made due at once", "G16",
        f"{LIMITS}::test_a_job_at_its_gate_keeps_its_place_when_it_is_retried_now",
        (
            sql("retry_now", "job.place is null into line, moved", "true into line, moved"),
            sql("requeue", "faultline.place_at_gate(job.limit_id, job.id)", "0"),
        ),
    ),
    Mutant(
        "a job that comes back gets a new place in its order", "G16",
        f"{LIMITS}::test_jobs_of_a_key_run_in_the_order_of_their_ids",
        (sql("place_at_gate", "known.per_key = 1", "false"),),
    ),
    Mutant(
        "a job that waits for its retry holds nothing", "G16",
        f"{LIMITS}::test_jobs_of_a_key_run_in_the_order_of_their_ids",
        (sql("holds_gate", "known.on_retry = 'block'", "false"),),
    ),
    Mutant(
        "a first job that is locked is passed", "G16",
        f"{LIMITS}::test_a_first_job_that_another_session_holds_is_not_passed",
        (sql("admit_first", "          order by head.place\n          limit 1)",
             "          order by head.place\n          limit 1 for update skip locked)"),),
    ),
    Mutant(
        "the longest line takes every slot", "G16", f"{LIMITS}::test_a_limit_in_total_lets_keys_take_turns",
        (sql("admit_in_turn", "      order by rank, g.turn", "      order by job.place"),
         sql("admit_in_turn", "ceil((wanted - given)::float8 / cardinality(gates))", "wanted - given"),),
    ),
    Mutant(
        "the oldest key has each slot that is freed", "G16", f"{LIMITS}::test_keys_take_turns_for_each_slot_that_is_freed",
        (sql("admit_in_turn", "      order by rank, g.turn", "      order by rank, job.place"),),
    ),
    Mutant(
        "an expired job takes a slot", "G16", f"{OTHERS}::test_an_expired_job_takes_no_token",
        (sql("admit_in_turn", "            and (job.expires_at is null or job.expires_at > moment)", "            and true"),),
    ),
    Mutant(
        "a claim uses the parent from before its lock", "G16", f"{OTHERS}::test_a_claim_that_waited_for_a_new_parent_keeps_to_its_total",
        (sql("admit", "    continue when own.parent is distinct from line.parent;\n", ""),),
    ),
    Mutant(
        "jobs at gates do not fill a queue", "G13", f"{OTHERS}::test_a_full_queue_refuses_limited_jobs_too",
        (sql("mark_full", "job.place is not null   -- due, and at its gate", "false"),),
    ),
    Mutant(
        "a job is replaced by one with another limit key", "G16", f"{OTHERS}::test_a_job_is_not_replaced_by_one_with_another_limit_key",
        (sql("replace_args", "    and (job.limit_id, job.gate) is not distinct from (replace_args.limit_id, replace_args.gate)\n  for no key update skip locked;\n  if not found", "  for no key update skip locked;\n  if not found"),),
    ),
    Mutant(
        "jobs that move forget the keys that were named", "G16", f"{OTHERS}::test_a_job_whose_limit_key_was_named_keeps_it_when_its_task_moves",
        (sql("moved_gate", "moved_gate.gate is distinct from faultline.gate_in(before, moved_gate.args)", "false"),),
    ),
    Mutant(
        "a parent counts its own jobs alone", "G16", f"{LIMITS}::test_a_parent_counts_the_jobs_of_its_children",
        (sql("slots_left", "counted.id = known.id or counted.parent = known.id", "counted.id = known.id"),),
    ),
    Mutant(
        "a paused queue takes slots", "G16", f"{LIMITS}::test_a_paused_queue_gets_no_slot",
        (sql("admit", " and not lane.paused", ""),),
    ),
    Mutant(
        "jobs of unknown tasks take slots", "G16",
        f"{LIMITS}::test_a_worker_admits_no_job_of_a_task_it_does_not_know",
        (sql("claim", "claim.max_jobs, known, claim.except_tasks, claim.freed", "claim.max_jobs, null, claim.except_tasks, claim.freed"),
         sql("slots_left", "return known.total - held;", "return 1 - held;"),),
    ),
    Mutant(
        "jobs that were there before a limit pass it", "G16",
        f"{WORKER}::test_a_worker_keeps_to_the_limit_that_its_task_declares",
        (Patch("store/limit_sync.py", "                moved += yield from move_jobs(spec.name)", "                pass"),),
    ),
    Mutant(
        "a claim with an old snapshot admits", "G16", f"{LIMITS}::test_a_claim_with_an_old_snapshot_is_refused",
        (sql("admit", "not in ('read committed', 'read uncommitted')", "in ('nothing')"),),
    ),
    Mutant(
        "no round admits what no claim came for", "G16", "tests/watchdog/test_limits.py::test_a_round_admits_what_no_claim_came_for",
        (Patch("watchdog/chores.py", '        moved += await _alone("sweep_gates", sweep_gates(self.line)) or 0\n', ""),),
    ),
    Mutant(
        "the end of a job does not wake its worker for the next of its key", "G16",
        f"{WORKER}::test_a_full_key_goes_on_as_soon_as_its_job_ends",
        (Patch("worker/state.py", "            self._freed.add(gate)\n        self.woken.set()\n",
               "            self._freed.add(gate)\n"),),
    ),
    Mutant(
        "a claim looks at gates in a random order only", "G16",
        f"{LIMITS}::test_a_freed_gate_among_many_full_ones_goes_on_at_once",
        (sql("waiting_gates", "first   bigint[] := waiting_gates.freed[1:most]", "first   bigint[] := null"),),
    ),
    Mutant(
        "no round comes for the next token", "G16",
        "tests/watchdog/test_limits.py::test_the_next_round_comes_with_the_next_token",
        (sql("next_due", "    faultline.next_token());", "    null);"),),
    ),
)  # fmt: skip
