"""Mutants of who may read the clock, and of how jobs come back."""

from proof.mutants.mutant import Mutant, sql

CLOCK = "tests/promises/test_05_only_takers_read_the_clock.py"
OUTAGE = "tests/promises/test_06_an_outage_is_not_a_crash.py"
WAY_BACK = "tests/promises/test_06_one_way_back.py"

REAP_LOCK = "limit reap.most\n      for no key update skip locked"

MUTANTS = (
    Mutant(
        "complete asks the clock", "G5",
        f"{CLOCK}::test_a_lease_may_be_settled_hours_late_while_no_worker_took_it",
        (sql(
            "complete", "and job.claim = complete.claim",
            "and job.claim = complete.claim and job.lease_until > faultline.now()",
        ),),
    ),
    Mutant(
        "a beat counts from the beginning of its transaction", "G5",
        f"{CLOCK}::test_a_beat_in_an_old_transaction_counts_from_real_time",
        (sql("heartbeat", ":= faultline.now();", ":= pg_catalog.now();"),),
    ),
    Mutant(
        "a beat may shorten a lease", "G5",
        f"{CLOCK}::test_a_clock_that_goes_back_shortens_no_lease",
        (sql("heartbeat", "greatest(job.lease_until, ", "greatest("),),
    ),
    Mutant(
        "a beat moves the hard deadline", "G9",
        f"{CLOCK}::test_no_beat_moves_the_hard_deadline",
        (sql("heartbeat", "heartbeat.lease), job.deadline_at)", "heartbeat.lease))"),),
    ),
    Mutant(
        "reap looks first and locks later", "G8",
        f"{WAY_BACK}::test_a_beat_that_is_under_way_is_neither_overtaken_nor_waited_for",
        (sql("reap", REAP_LOCK, "limit reap.most"),),
    ),
    Mutant(
        "reap waits for a slow commit", "G8",
        f"{WAY_BACK}::test_a_completion_that_is_under_way_is_neither_undone_nor_waited_for",
        (sql("reap", REAP_LOCK, "limit reap.most\n      for no key update"),),
    ),
    Mutant(
        "reapers wait for each other", "G8",
        f"{WAY_BACK}::test_a_second_reaper_finds_nothing_while_the_first_is_still_at_it",
        (sql("reap", "for no key update skip locked;\n  free", "for no key update;\n  free"),),
    ),
    Mutant(
        "reap does not count the crash", "G8",
        f"{WAY_BACK}::test_a_crash_goes_the_way_of_a_reported_failure",
        (sql("reap", "crashed => true", "crashed => false"),),
    ),
    Mutant(
        "reap takes what has not run out", "G10",
        f"{WAY_BACK}::test_a_lease_that_has_not_run_out_is_left_alone",
        (sql("reap", "and job.lease_until < moment", "and job.lease_until is not null"),),
    ),
    Mutant(
        "a reaped job is not tried again", "G8",
        f"{WAY_BACK}::test_a_crash_goes_the_way_of_a_reported_failure",
        (sql("put_back", "    where judged.dies_of is null\n", "    where judged.dies_of is null and not put_back.crashed\n"),),
    ),
    Mutant(
        "the last attempt is not the last", "G9",
        f"{WAY_BACK}::test_a_crash_of_the_last_attempt_ends_among_the_dead",
        (sql("put_back", "ended.attempt >= ended.max_attempts", "ended.attempt > ended.max_attempts"),),
    ),
    Mutant(
        "a crash costs no attempt", "G9",
        "tests/sql/test_reap.py::test_a_job_that_kills_its_workers_dies_with_its_attempts",
        (sql(
            "put_back", "judged.attempt, judged.crashed_times, judged.alone_times, judged.key, judged.said",
            "judged.attempt - put_back.crashed::int, judged.crashed_times, judged.alone_times, judged.key, judged.said",
        ),),
    ),
    Mutant(
        "reaping starts at once after a silence", "G10",
        f"{OUTAGE}::test_after_a_long_silence_no_lease_is_reaped_for_one_lease",
        (sql("reap", "if last.hold_until > moment then", "if false then"), sql("reap", "and (calm or", "and (true or")),
    ),
    Mutant(
        "a lease has two thirds of its time after a gap", "G10",
        f"{OUTAGE}::test_a_worker_that_finds_the_new_primary_late_keeps_its_lease",
        (
            sql("round", "then at + lease\n", "then at + lease * 2 / 3\n"),
            sql("spared", "(spared.last).gap_at[slot.n] + spared.lease)", "(spared.last).gap_at[slot.n] + spared.lease * 2 / 3)"),
        ),
    ),
    Mutant(
        "a young server does not hold its fire", "G10",
        f"{OUTAGE}::test_a_young_server_holds_fire_until_it_is_one_lease_old",
        (sql("round", "then started + lease", "then last.hold_until"),),
    ),
)  # fmt: skip
