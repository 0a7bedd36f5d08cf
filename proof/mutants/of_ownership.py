"""Mutants of the lease on the row, the token and the claim."""

from proof.mutants.mutant import Mutant, Patch, sql

LEASE = "tests/promises/test_01_a_lease_is_three_values_on_the_row.py"
TOKEN = "tests/promises/test_02_a_token_only_grows.py"
EPOCH = "tests/promises/test_02_the_epoch_rises.py"
STANDBY = "tests/promises/test_02_a_promoted_standby_issues_higher_tokens.py"
NUMBERS = "tests/promises/test_13_a_number_is_given_once.py"
IDENTITY = "tests/promises/test_03_a_claim_is_identity.py"
WAY_BACK = "tests/promises/test_06_one_way_back.py"

COMPLETE_ASKS_FOR_THE_CLAIM = "\n    and job.claim = complete.claim"

MUTANTS = (
    Mutant(
        "no CHECK that a running job is leased", "G2",
        f"{LEASE}::test_a_running_job_without_a_lease_cannot_exist",
        (Patch(
            "sql/migrations/0003_jobs.sql",
            "check ((claim is null) = (lease_until is null)\n"
            "       and (claim is null) = (deadline_at is null)\n"
            "       and (claim is null) = (claimed_at is null))",
            "check (true)",
        ),),
    ),
    Mutant(
        "a claim takes a job that another worker holds", "G2",
        "tests/sql/test_claim.py::test_claims_at_once_never_share_a_job",
        (sql("claim", "        and job.claim is null\n", ""),),
    ),
    Mutant(
        "a claim takes leases that ran out", "G8",
        f"{WAY_BACK}::test_a_claim_never_takes_a_lease_that_ran_out",
        (sql(
            "claim", "and job.claim is null", "and (job.claim is null or job.lease_until < faultline.now())"
        ),),
    ),
    Mutant(
        "a claim draws its number before it has its rows", "G14",
        f"{TOKEN}::test_the_later_lock_has_the_higher_token",
        (
            sql("claim", "  number := faultline.epoch() + nextval('faultline.tokens');\n", ""),
            sql(
                "claim", "  -- Materialised in an array",
                "  number := faultline.epoch() + nextval('faultline.tokens');\n  -- Materialised in an array",
            ),
        ),
    ),
    Mutant(
        "a claim draws a number whether it finds work or not", "G14",
        f"{TOKEN}::test_a_claim_that_finds_nothing_draws_no_number",
        (sql(
            "claim", "  if picked is null then",
            "  perform nextval('faultline.tokens');\n  if picked is null then",
        ),),
    ),
    Mutant(
        "a claim forgets the row's last token", "G14",
        f"{TOKEN}::test_a_token_is_raised_above_the_rows_last_one",
        (sql("claim", "greatest(number, job.token + 1)", "number"),),
    ),
    Mutant(
        "a claim that waited for the epoch raises it again", "G14",
        f"{EPOCH}::test_claimers_that_wait_for_the_one_that_raises_the_epoch_do_not_raise_it_again",
        (sql("record_server", "where setting.system_identifier <> server\n     or setting.timeline > here;", ";"),),
    ),
    Mutant(
        "the epoch does not notice another server", "G14",
        f"{EPOCH}::test_another_server_issues_higher_tokens",
        (sql("record_server", "setting.system_identifier <> server\n     or", ""),),
    ),
    Mutant(
        "the epoch does not notice a timeline that started again", "G14",
        f"{EPOCH}::test_a_timeline_that_started_again_raises_the_base",
        (sql("record_server", "\n     or setting.timeline > here;", ";"),),
    ),
    Mutant(
        "the epoch is the same after a promotion", "G14",
        f"{STANDBY}::test_a_promoted_standby_that_lost_the_last_claims_issues_higher_tokens",
        (sql("record_server", "where setting.timeline < here", "where false"),),
    ),
    Mutant(
        "an enqueue does not look at the server", "G14",
        f"{NUMBERS}::test_a_promoted_standby_repeats_no_id_that_it_lost",
        (sql("enqueue", "  perform faultline.check_server();\n", ""),),
    ),
    Mutant(
        "many jobs are enqueued without a look at the server", "G14",
        f"{NUMBERS}::test_every_way_to_a_number_notices_another_server",
        (sql("enqueue_many", "  perform faultline.check_server();\n", ""),),
    ),
    Mutant(
        "two servers with one timeline issue the same tokens", "G14",
        f"{NUMBERS}::test_two_standbys_that_take_the_same_timeline_repeat_nothing",
        (sql("raise_sequences", "greatest(line, tokens.last_value + more)", "tokens.last_value + more"),),
    ),
    Mutant(
        "two servers with one timeline give the same ids", "G14",
        f"{NUMBERS}::test_two_standbys_that_take_the_same_timeline_repeat_nothing",
        (sql("raise_sequences", "greatest(line, places.last_value", "greatest(places.last_value"),),
    ),
    Mutant(
        "a claim on a server that was started again does not look at it", "G14",
        f"{NUMBERS}::test_a_restored_snapshot_of_the_files_repeats_nothing",
        (
            sql("epoch", "known.server_started <> pg_postmaster_start_time()", "false"),
            sql("enqueue", "  perform faultline.check_server();\n", ""),
        ),
    ),
    Mutant(
        "a clock that was set back repeats numbers", "G14",
        f"{NUMBERS}::test_a_clock_that_was_set_back_still_raises_the_numbers",
        (sql(
            "raise_sequences", "greatest(line, places.last_value + more, faultline.highest_id() + more)",
            "greatest(line, 1)",
        ),),
    ),
    Mutant(
        "rows that came without their sequence are overlooked", "G14",
        f"{NUMBERS}::test_rows_that_came_without_their_sequence_are_stepped_over",
        (sql("raise_sequences", ", faultline.highest_id() + more)", ")"),),
    ),
    Mutant(
        "queues that came without their sequence are overlooked", "G14",
        f"{NUMBERS}::test_queues_and_workers_that_came_without_their_sequences_are_stepped_over",
        (sql("raise_sequences", "    perform faultline.step_over_rows();\n", ""),),
        red_by=("UniqueViolation", "NoDataFound"),
    ),
    Mutant(
        "a session that waited to raise the numbers raises them again", "G14",
        f"{NUMBERS}::test_many_at_once_raise_the_numbers_once",
        (sql(
            "raise_sequences",
            "if (select mark.last_value from faultline.server_mark as mark) <> faultline.server_mark() then",
            "if true then",
        ),),
    ),
    Mutant(
        "the numbers are raised under a lock that lasts as long as the transaction", "G14",
        f"{NUMBERS}::test_an_enqueue_in_an_open_transaction_holds_up_no_other",
        (sql("check_server", "perform faultline.raise_sequences()", "perform faultline.epoch()"),),
    ),
    Mutant(
        "the numbers are raised under an advisory lock, which any login may take", "G14",
        f"{NUMBERS}::test_a_login_without_rights_cannot_hold_up_a_new_server",
        (sql(
            "raise_sequences", "lock table faultline.migrations in exclusive mode;",
            "perform pg_advisory_xact_lock(7021786235081);",
        ),),
    ),
    Mutant(
        "an attempt that ends while its range of the ledger is made has failed", "G10",
        f"{NUMBERS}::test_an_attempt_that_ends_while_its_range_is_made_is_recorded_again",
        (Patch("store/driver/sqlstate.py", "facts.table == _STRAYS", "False"),),
        red_by=("OutOfBounds",),
    ),
    Mutant(
        "a server that tells no timeline is refused", "G14",
        f"{NUMBERS}::test_a_server_that_tells_no_timeline_is_worked_on_all_the_same",
        (sql("record_server", "exception when others then", "exception when division_by_zero then"),),
    ),
    Mutant(
        "complete does not ask for the claim", "G4",
        f"{IDENTITY}::test_the_right_token_with_a_wrong_claim_is_refused",
        (sql("complete", COMPLETE_ASKS_FOR_THE_CLAIM, ""),),
    ),
    Mutant(
        "complete does not ask for the claim, after a lossy failover", "G14",
        f"{IDENTITY}::test_a_reissued_token_is_harmless",
        (sql("complete", COMPLETE_ASKS_FOR_THE_CLAIM, ""),),
    ),
    Mutant(
        "snooze and release do not ask for the token", "G4",
        f"{IDENTITY}::test_the_right_claim_with_a_wrong_token_is_refused",
        (sql("give_back", "\n    and job.token = give_back.token", ""),),
    ),
    Mutant(
        "a view shows the claim", "G4",
        f"{IDENTITY}::test_the_claim_is_in_no_view_and_in_no_answer",
        (Patch(
            "sql/views/refused_writes.sql",
            "left join faultline.workers as worker on worker.id = noted.worker;",
            "left join faultline.workers as worker on worker.id = noted.worker;\n"
            "create view faultline.leases as select id, token, claim from faultline.active;",
        ),),
    ),
)  # fmt: skip
