"""Mutants of rule 4: the fence, and the verbs behind it."""

from tests.promises import test_03_a_claim_is_identity as identity
from tests.promises import test_04_a_fence_at_repeatable_read as snapshots
from tests.promises import test_04_a_write_names_job_token_and_claim as rule_4
from tests.promises import test_04_one_of_many_settles as settling
from tests.promises.sabotage.mutant import NO_LOCK, Mutant

MUTANTS = [
    Mutant(
        "the fence is a plain SELECT",
        rule_4.test_a_fenced_job_cannot_be_reaped,
        (("fence", *NO_LOCK),),
    ),
    Mutant(
        "the fence is FOR KEY SHARE",
        rule_4.test_a_fenced_job_cannot_be_reaped,
        (("fence", "for no key update;", "for key share;"),),
    ),
    Mutant(
        "the fence is FOR UPDATE",
        rule_4.test_a_fence_lets_rows_that_refer_to_the_job_go_in,
        (("fence", "for no key update;", "for update;"),),
    ),
    Mutant(
        "the fence is a plain SELECT, at REPEATABLE READ",
        snapshots.test_a_reclaim_behind_an_old_snapshot_is_told_as_try_again,
        (("fence", *NO_LOCK),),
        given={"level": "repeatable read", "verb": "fence"},
    ),
    Mutant(
        "the refusal is a warning",
        rule_4.test_a_lease_that_was_taken_back_writes_nothing,
        (("refuse", "raise exception 'lease lost", "raise warning 'lease lost"),),
        given={"verb": "fence"},
    ),
    Mutant(
        "fail goes past the fence",
        rule_4.test_a_lease_that_somebody_else_has_now_writes_nothing,
        (("fail", "  perform faultline.fence(fail.job_id, fail.token, fail.claim);\n", ""),),
        given={"verb": "fail"},
    ),
    Mutant(
        "bury goes past the fence",
        settling.test_of_two_at_once_the_second_waits_and_is_refused,
        (("bury", "  perform faultline.fence(bury.job_id, bury.token, bury.claim);\n", ""),),
        given={"first": "release"},
    ),
    Mutant(
        "a batch of completions waits for a locked job",
        rule_4.test_a_batch_answers_for_each_job_and_waits_for_none,
        (("complete_many", "for no key update skip locked", "for no key update"),),
        given={"ending": "succeeded"},
    ),
    Mutant(
        "a batch of failures waits for a locked job",
        rule_4.test_a_batch_answers_for_each_job_and_waits_for_none,
        (("fail_many", "for no key update skip locked", "for no key update"),),
        given={"ending": "failed"},
    ),
    Mutant(
        "a batch of failures goes by the job alone",
        identity.test_the_batch_verbs_refuse_what_the_single_ones_refuse,
        (("fail_many", " and job.token = failed.token and job.claim = failed.claim", ""),),
    ),
    Mutant(
        "a beat waits for a locked job",
        rule_4.test_a_beat_waits_for_nobody_and_a_locked_job_is_busy_not_lost,
        (("heartbeat", "for no key update skip locked", "for no key update"),),
    ),
]
