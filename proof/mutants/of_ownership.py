"""Mutants of the lease on the row, the token and the claim."""

from proof.mutants.mutant import Mutant, Patch, sql

LEASE = "tests/promises/test_01_a_lease_is_three_values_on_the_row.py"
TOKEN = "tests/promises/test_02_a_token_only_grows.py"
EPOCH = "tests/promises/test_02_the_epoch_rises.py"
STANDBY = "tests/promises/test_02_a_promoted_standby_issues_higher_tokens.py"
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
        "a claim takes what somebody else has", "G2",
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
        f"{TOKEN}::test_whoever_locks_later_has_the_higher_token",
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
        "whoever waited for the epoch raises it again", "G14",
        f"{EPOCH}::test_claimers_that_wait_for_the_one_who_raises_the_epoch_do_not_raise_it_again",
        (sql("epoch", "where setting.system_identifier <> server\n       or setting.timeline > here;", ";"),),
    ),
    Mutant(
        "the epoch does not notice another server", "G14",
        f"{EPOCH}::test_another_server_issues_higher_tokens",
        (sql("epoch", "known.system_identifier = server and", ""),),
    ),
    Mutant(
        "the epoch does not notice a timeline that started again", "G14",
        f"{EPOCH}::test_a_timeline_that_started_again_raises_the_base",
        (sql("epoch", "\n       or setting.timeline > here;", ";"),),
    ),
    Mutant(
        "the epoch is the same after a promotion", "G14",
        f"{STANDBY}::test_a_promoted_standby_that_lost_the_last_claims_issues_higher_tokens",
        (
            sql("epoch", "(known.base + here - 1) << 40", "known.base << 40"),
            sql("epoch", "(known.base + known.timeline - 1) << 40", "known.base << 40"),
        ),
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
