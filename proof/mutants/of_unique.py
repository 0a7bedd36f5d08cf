"""Mutants of unique jobs, of jobs that expire, of full queues, of batches and of ageing."""

from proof.mutants.mutant import Mutant, Patch, sql, worker

RULES = "tests/sql/test_key_rules.py"
EXPIRY = "tests/sql/test_expire.py"
BOUNDS = "tests/sql/test_queue_bounds.py"
BATCHES = "tests/worker/test_batches.py"
MODEL = "tests/sql/test_key_rules_model.py::test_random_uses_do_what_the_reference_says"

MUTANTS = (
    Mutant(
        "the job that is found is not locked", "G11",
        f"{RULES}::test_what_a_producer_has_not_committed_is_not_claimed_past",
        (sql(
            "take_queued", "and job.claim is null\n        and (job.expires_at is null or job.expires_at > moment)\n      for share skip locked;",
            "and job.claim is null;",
        ),),
    ),
    Mutant(
        "a running job counts as queued", "G11", f"{RULES}::test_a_running_job_does_not_count_and_keeps_its_args",
        (sql("take_queued", "where job.id = held.job_id and job.claim is null", "where job.id = held.job_id"),),
    ),
    Mutant(
        "a leased job is replaced", "G11", f"{RULES}::test_a_running_job_does_not_count_and_keeps_its_args",
        (sql("replace_args", "and job.claim is null and job.token = 0\n", "\n"),),
    ),
    Mutant(
        "a job that waits for its retry is replaced", "G11",
        f"{RULES}::test_a_job_that_waits_for_its_retry_is_queued_but_is_not_replaced",
        (sql(
            "replace_args", "where job.id = replace_args.job_id and job.token = 0\n",
            "where job.id = replace_args.job_id\n",
        ),),
    ),
    Mutant(
        "a replaced job keeps its old args", "G11",
        f"{RULES}::test_a_debounced_job_that_is_due_gets_the_newest_args_and_stays_due",
        (sql("replace_args", "update faultline.active as job set args = replace_args.args", "update faultline.active as job set args = job.args"),),
    ),
    Mutant(
        "an enqueue debounces for ever", "G11",
        f"{RULES}::test_a_debounced_job_begins_when_it_is_quiet_or_at_the_latest_moment",
        (sql("replace_args", "least(replace_args.due_at, job.created_at + longest)", "replace_args.due_at"),),
    ),
    Mutant(
        "the key stays with the job that ended", "G11", MODEL,
        (sql("take_queued", "set job_id = take_queued.job_id, until", "set until"),),
    ),
    Mutant(
        "a throttled key is free when its job ends", "G11",
        f"{RULES}::test_a_throttle_counts_from_the_end_of_the_last_job",
        (sql("take_key_by_rule", "case when rule = 'while_unfinished' then interval '0' else key_for end", "interval '0'"),),
    ),
    Mutant(
        "a key with a rule is given to any task", "G11", f"{RULES}::test_a_key_of_another_task_is_refused",
        (sql("take_queued", "if held.request <> take_queued.request then", "if false then"),),
    ),
    Mutant(
        "jobs of one call do not see each other", "G11",
        f"{RULES}::test_of_several_in_one_call_one_is_made_and_the_last_replaces",
        (sql("take_queued", "if held.job_id = any (siblings) then", "if false then"),),
    ),
    Mutant(
        "a batch of successes waits for the producer of a key", "G10",
        f"{RULES}::test_settling_waits_for_no_producer_of_the_key",
        (sql("complete_many", "\n      and position('/' in named.scope) = 0;", ";"),),
    ),
    Mutant(
        "prune forgets the key of a job that waits", "G11",
        f"{RULES}::test_prune_keeps_the_key_of_a_job_that_waits_and_drops_it_afterwards",
        (
            sql("prune", "      and not exists (select from faultline.later as job where job.id = named.job_id)\n", ""),
            sql("prune", "set until = moment + interval '1 hour' from living", "set until = named.until from living"),
        ),
    ),
    Mutant(
        "an argument that is left out is not its default", "G11",
        "tests/client/test_unique.py::test_an_argument_that_is_left_out_counts_as_its_default",
        (Patch("unique.py", "given = defaults | json.loads(args)", "given = dict.fromkeys(names) | json.loads(args)"),),
    ),
    Mutant(
        "a job is claimed past its expiry", "G13", f"{EXPIRY}::test_a_job_that_is_late_is_never_claimed_and_ends_as_cancelled",
        (
            sql("claim", "        and (job.expires_at is null or job.expires_at > moment)\n        and", "        and"),
            sql("claim", "\n    and (job.expires_at is null or job.expires_at > moment)   -- once more", "   -- once more"),
        ),
    ),
    Mutant(
        "late jobs are picked and then left", "G13", f"{EXPIRY}::test_late_jobs_in_front_hold_up_no_other",
        (sql("claim", "        and (job.expires_at is null or job.expires_at > moment)\n        and", "        and"),),
    ),
    Mutant(
        "a running job is ended as expired", "G2", f"{EXPIRY}::test_until_its_time_it_is_claimed_and_then_runs_past_it",
        (sql("expire", "where job.expires_at <= moment and job.claim is null", "where job.expires_at <= moment"),),
    ),
    Mutant(
        "a job that was put off expires after it began", "G13", f"{EXPIRY}::test_a_job_that_was_claimed_once_expires_no_more",
        (sql("give_back", "held.expires_at := case when give_back.unknown_task then held.expires_at end;", ""),),
    ),
    Mutant(
        "a scheduled job forgets that it expires", "G13", f"{EXPIRY}::test_a_scheduled_job_that_is_retried_now_still_expires",
        (sql("fetch_later", "  return job;", "  job.expires_at := null;\n  return job;"),),
    ),
    Mutant(
        "a sweep waits for a locked job", "G10", f"{EXPIRY}::test_a_sweep_has_a_bound_and_skips_what_is_held",
        (sql("expire", "    for no key update skip locked);", "    for no key update);"),),
        red_by=("LockNotAvailable",),
    ),
    Mutant(
        "an expired job keeps its key", "G11", f"{EXPIRY}::test_the_key_of_an_expired_job_lapses_as_of_any_other",
        (sql("expire", "    where ended.key is not null\n", "    where false\n"),),
    ),
    Mutant(
        "an expired job counts as queued", "G11", f"{EXPIRY}::test_an_expired_job_does_not_count_as_queued",
        (sql("take_queued", "job.claim is null\n        and (job.expires_at is null or job.expires_at > moment)", "job.claim is null"),),
    ),
    Mutant(
        "a round ends no job that expired", "G13", "tests/watchdog/test_rounds.py::test_a_job_that_no_worker_claims_in_time_is_ended_and_told",
        (Patch("watchdog/chores.py", '            await _alone("expire", expire(self.line))\n', ""),),
    ),
    Mutant(
        "a full queue takes a single job", "G13", f"{BOUNDS}::test_a_full_queue_refuses_what_is_new_by_name",
        (sql("enqueue", "  if closed then", "  if false then"),),
    ),
    Mutant(
        "a full queue takes many jobs", "G13", f"{BOUNDS}::test_a_full_queue_refuses_what_is_new_by_name",
        (sql("enqueue_many", "  elsif closed then", "  elsif false then"),),
    ),
    Mutant(
        "a full queue takes jobs with keys", "G13", f"{BOUNDS}::test_a_full_queue_refuses_what_is_new_by_name",
        (sql("enqueue_keyed", "  if closed and exists", "  if false and exists"),),
    ),
    Mutant(
        "a full queue takes gathered jobs", "G13", f"{BOUNDS}::test_a_full_queue_refuses_what_is_new_by_name",
        (sql("enqueue_each", "where not lane.is_full and lane.queue", "where lane.queue"),),
    ),
    Mutant(
        "running jobs fill a queue", "G13", f"{BOUNDS}::test_the_mark_follows_the_rounds_and_goes_with_the_bound",
        (sql("mark_full", " and job.claim is null\n", "\n"),),
    ),
    Mutant(
        "a queue without a bound stays full", "G13", f"{BOUNDS}::test_the_mark_follows_the_rounds_and_goes_with_the_bound",
        (sql("configure_queue", "is_full = lane.is_full and kept.max_depth is not null", "is_full = lane.is_full"),),
    ),
    Mutant(
        "a round marks no queue", "G13", "tests/watchdog/test_rounds.py::test_a_round_marks_the_queues_that_are_full",
        (Patch("watchdog/chores.py", "            await self._mark_full()\n", ""),),
    ),
    Mutant(
        "an old job stays behind those of a higher priority", "G8",
        f"{BOUNDS}::test_an_old_job_moves_ahead_by_a_priority_for_each_age",
        (sql("claim", "case when lane.age_after is null then lane.priority", "case when true then lane.priority"),),
    ),
    Mutant(
        "a new lane does not age", "G8", f"{BOUNDS}::test_a_new_lane_ages_as_its_queue_does",
        (sql("lane_of", "owner.keep, owner.age_after", "owner.keep, null"),),
    ),
    Mutant(
        "what a batch handler raises is a success of its jobs", "G3", f"{BATCHES}::test_an_exception_fails_all_that_have_no_outcome_yet",
        (worker("execution/batches", "            fail_rest(items, error)\n", "            end_rest(items, None)\n"),),
    ),
    Mutant(
        "what a thread says of a job of its batch is not heard", "G3", f"{BATCHES}::test_a_job_that_is_done_is_recorded_while_the_others_go_on",
        (Patch("batch.py", "            self._loop.call_soon_threadsafe(self._tell, share)", "            pass"),),
    ),
    Mutant(
        "a lost lease ends the call of its batch", "G2", f"{BATCHES}::test_a_lost_lease_is_told_for_that_job_alone",
        (worker("execution/batches", "if not self.alive and self.call is not None:", "if self.call is not None:"),),
    ),
    Mutant(
        "a call goes on though no job of it is left", "G9", f"{BATCHES}::test_each_job_has_its_own_timeout_and_the_call_ends_when_none_is_left",
        (worker("execution/batches", "                self.call.cancel()  # nothing", "                pass  # nothing"),),
    ),
    Mutant(
        "a worker claims no jobs ahead for a batch", "G8", f"{BATCHES}::test_many_jobs_are_done_in_few_calls_however_few_slots_there_are",
        (worker("state", "len(self.abandoned) + self.gathering", "len(self.abandoned)"),),
    ),
    Mutant(
        "a job that crashed goes with others", "G9", f"{BATCHES}::test_a_job_that_crashed_goes_by_itself",
        (
            worker("execution/batches", "attempt.spec is batch.spec and not attempt.job.crashes and", "attempt.spec is batch.spec and"),
            worker("execution/batches", "batch.missing > 0 and not attempt.job.crashes:", "batch.missing > 0:"),
            worker("execution/batches", "1 if attempt.job.crashes else spec.batch", "spec.batch"),
        ),
    ),
)  # fmt: skip
