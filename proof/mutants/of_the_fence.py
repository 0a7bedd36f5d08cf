"""Mutants of the fence, and of the verbs behind it."""

from proof.mutants.mutant import Mutant, sql

IDENTITY = "tests/promises/test_03_a_claim_is_identity.py"
SNAPSHOTS = "tests/promises/test_04_a_fence_at_repeatable_read.py"
FENCE = "tests/promises/test_04_a_write_names_job_token_and_claim.py"
MEETING = "tests/promises/test_04_a_batch_that_meets_a_beat.py"
SETTLING = "tests/promises/test_04_one_of_many_settles.py"

NO_LOCK = ("for no key update;", ";")

MUTANTS = (
    Mutant(
        "the fence is a plain SELECT", "G3",
        f"{FENCE}::test_a_fenced_job_cannot_be_reaped",
        (sql("fence", *NO_LOCK),),
    ),
    Mutant(
        "the fence is FOR KEY SHARE", "G4",
        f"{FENCE}::test_a_fenced_job_cannot_be_reaped",
        (sql("fence", "for no key update;", "for key share;"),),
    ),
    Mutant(
        "the fence is FOR UPDATE", "G3",
        f"{FENCE}::test_a_fence_lets_rows_that_refer_to_the_job_go_in",
        (sql("fence", "for no key update;", "for update;"),),
    ),
    Mutant(
        "the fence compares the token only", "G4",
        f"{IDENTITY}::test_the_right_token_with_a_wrong_claim_is_refused",
        (sql("fence", "\n    and job.claim = fence.claim", ""),),
    ),
    Mutant(
        "the fence is a plain SELECT, at REPEATABLE READ", "G4",
        f"{SNAPSHOTS}::test_a_reclaim_behind_an_old_snapshot_is_told_as_try_again",
        (sql("fence", *NO_LOCK),),
    ),
    Mutant(
        "the refusal is a warning", "G4",
        f"{FENCE}::test_a_lease_that_was_taken_back_writes_nothing",
        (sql("refuse", "raise exception 'lease lost", "raise warning 'lease lost"),),
    ),
    Mutant(
        "fail goes past the fence", "G4",
        f"{FENCE}::test_a_lease_that_another_worker_has_now_writes_nothing",
        (sql("fail", "  perform faultline.fence(fail.job_id, fail.token, fail.claim);\n", ""),),
    ),
    Mutant(
        "bury goes past the fence", "G2",
        f"{SETTLING}::test_of_two_at_once_the_second_waits_and_is_refused",
        (sql("bury", "  perform faultline.fence(bury.job_id, bury.token, bury.claim);\n", ""),),
    ),
    Mutant(
        "a batch of completions goes by job and token", "G4",
        f"{IDENTITY}::test_the_batch_verbs_refuse_what_the_single_ones_refuse",
        (sql(
            "complete_many", "where job.id = done.id and job.token = done.token and job.claim = done.claim",
            "where job.id = done.id and job.token = done.token",
        ),),
    ),
    Mutant(
        "a batch of completions deletes in the statement that locked", "G3",
        f"{MEETING}::test_a_completion_that_meets_a_beat_ends_the_job",
        (
            sql(
                "complete_many",
                "  select array_agg(done.id), array_agg(done.claim), array_agg(job.place), array_agg(done.result),\n"
                "         array_agg(job.key) filter (where job.key is not null), "
                "array_agg(done.id) filter (where job.key is not null)\n"
                "  into through_ids, through_claims, places, their_results, keys, keyed\n",
                "  with held as materialized (select done.id, done.claim, job.place, done.result\n",
            ),
            sql("complete_many", "  ) as job;\n\n", "  ) as job),\n"),
            sql("complete_many", "  with gone as (\n", "  gone as (\n"),
            sql("complete_many", "job.ctid = any (places)", "job.ctid = any (array(select held.place from held))"),
            sql(
                "complete_many", "  select count(*) into deleted from gone;",
                "  select count(*), array_agg(held.id), array_agg(held.claim)\n"
                "  into deleted, through_ids, through_claims from held;",
            ),
        ),
    ),
    Mutant(
        "a beat renews in the statement that locked", "G2",
        f"{MEETING}::test_a_beat_that_meets_another_change_renews_what_it_says_is_held",
        (
            sql(
                "heartbeat",
                "  select array_agg(held.id), array_agg(held.claim), array_agg(held.place) into held_ids, held_by, places "
                "from held;",
                "  , beaten as (update faultline.active as job set lease_until = moment + heartbeat.lease\n"
                "    where job.ctid = any (array(select held.place from held)))\n"
                "  select array_agg(held.id), array_agg(held.claim) into held_ids, held_by from held;",
            ),
            sql("heartbeat", "  where job.ctid = any (places);", "  where false;"),
        ),
    ),
    Mutant(
        "a batch of completions waits for a locked job", "G3",
        f"{FENCE}::test_a_batch_answers_for_each_job_and_waits_for_none",
        (sql("complete_many", "for no key update skip locked", "for no key update"),),
    ),
    Mutant(
        "a batch of failures waits for a locked job", "G3",
        f"{FENCE}::test_a_batch_answers_for_each_job_and_waits_for_none",
        (sql("fail_many", "for no key update skip locked", "for no key update"),),
    ),
    Mutant(
        "a batch of failures goes by the job alone", "G4",
        f"{IDENTITY}::test_the_batch_verbs_refuse_what_the_single_ones_refuse",
        (sql("fail_many", " and job.token = failed.token and job.claim = failed.claim", ""),),
    ),
    Mutant(
        "a beat waits for a locked job", "G10",
        f"{FENCE}::test_a_heartbeat_waits_for_no_lock_and_a_locked_job_is_busy_not_lost",
        (sql("heartbeat", "for no key update skip locked", "for no key update"),),
    ),
    Mutant(
        "a beat goes by the job alone: the zombie's beat keeps the new lease", "G4",
        "tests/sql/test_heartbeat.py::test_an_old_and_a_new_lease_of_one_job_are_told_apart",
        (sql(
            "heartbeat", "where job.id = beat.id and job.token = beat.token and job.claim = beat.claim\n      for",
            "where job.id = beat.id\n      for",
        ),),
    ),
)  # fmt: skip
