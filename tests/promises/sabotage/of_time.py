"""Mutants of rules 5 and 6: who may read the clock, and how jobs come back."""

from datetime import timedelta

from tests.promises import test_05_only_takers_read_the_clock as rule_5
from tests.promises import test_06_an_outage_is_not_a_crash as outage
from tests.promises import test_06_one_way_back as rule_6
from tests.promises.sabotage.mutant import Mutant

MUTANTS = [
    Mutant(
        "complete asks the clock",
        rule_5.test_a_lease_may_be_settled_hours_late_while_nobody_took_it,
        (
            (
                "complete",
                "and job.claim = complete.claim",
                "and job.claim = complete.claim and job.lease_until > faultline.now()",
            ),
        ),
        given={"jump": timedelta(hours=10)},
    ),
    Mutant(
        "a beat counts from the beginning of its transaction",
        rule_5.test_a_beat_in_an_old_transaction_counts_from_real_time,
        (("heartbeat", ":= faultline.now();", ":= pg_catalog.now();"),),
    ),
    Mutant(
        "a beat may shorten a lease",
        rule_5.test_a_clock_that_goes_back_shortens_no_lease,
        (("heartbeat", "greatest(job.lease_until, ", "greatest("),),
    ),
    Mutant(
        "a beat moves the hard deadline",
        rule_5.test_no_beat_moves_the_hard_deadline,
        (("heartbeat", "heartbeat.lease), job.deadline_at)", "heartbeat.lease))"),),
    ),
    Mutant(
        "a claim takes leases that ran out",
        rule_6.test_a_claim_never_takes_a_lease_that_ran_out,
        (("claim", "and job.claim is null", "and (job.claim is null or job.lease_until < faultline.now())"),),
    ),
    Mutant(
        "reap looks first and locks later",
        rule_6.test_a_beat_that_is_under_way_is_neither_overtaken_nor_waited_for,
        (("reap", "limit reap.most\n      for no key update skip locked", "limit reap.most"),),
    ),
    Mutant(
        "reap waits for a slow commit",
        rule_6.test_a_completion_that_is_under_way_is_neither_undone_nor_waited_for,
        (
            (
                "reap",
                "limit reap.most\n      for no key update skip locked",
                "limit reap.most\n      for no key update",
            ),
        ),
    ),
    Mutant(
        "reapers wait for each other",
        rule_6.test_a_second_reaper_finds_nothing_while_the_first_is_still_at_it,
        (("reap", "for no key update skip locked;\n  far", "for no key update;\n  far"),),
    ),
    Mutant(
        "reap does not count the crash",
        rule_6.test_a_crash_goes_the_way_of_a_reported_failure,
        (("reap", "crashed => true", "crashed => false"),),
    ),
    Mutant(
        "the last attempt is not the last",
        rule_6.test_a_crash_of_the_last_attempt_ends_among_the_dead,
        (("put_back", "ended.attempt >= ended.max_attempts", "ended.attempt > ended.max_attempts"),),
    ),
    Mutant(
        "nobody holds fire",
        outage.test_after_a_long_silence_nobody_reaps_for_one_lease,
        (("reap", "where row.hold_until > moment", "where false"),),
        needs=("old_server",),
    ),
    Mutant(
        "a young server does not hold its fire",
        outage.test_a_young_server_holds_fire_until_it_is_one_lease_old,
        (("round", "then pg_postmaster_start_time() + lease", "then last.hold_until"),),
        needs=("old_server",),
    ),
]
