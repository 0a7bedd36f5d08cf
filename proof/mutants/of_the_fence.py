"""Mutants of the fence, and of the verbs behind it."""

from proof.mutants.mutant import Mutant, sql

IDENTITY = "tests/promises/test_03_a_claim_is_identity.py"
SNAPSHOTS = "tests/promises/test_04_a_fence_at_repeatable_read.py"
FENCE = "tests/promises/test_04_a_write_names_job_token_and_claim.py"
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
        f"{FENCE}::test_a_lease_that_somebody_else_has_now_writes_nothing",
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
        f"{FENCE}::test_a_beat_waits_for_nobody_and_a_locked_job_is_busy_not_lost",
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
