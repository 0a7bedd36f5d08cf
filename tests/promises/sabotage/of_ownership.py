"""Mutants of rules 1 to 3: the lease on the row, the token, the claim."""

from tests.promises import test_01_a_lease_is_three_values_on_the_row as rule_1
from tests.promises import test_02_a_token_only_grows as rule_2
from tests.promises import test_02_the_epoch_rises as epoch
from tests.promises import test_03_a_claim_is_identity as rule_3
from tests.promises.sabotage.mutant import Mutant

MUTANTS = [
    Mutant(
        "no CHECK that a running job is leased",
        rule_1.test_a_running_job_without_a_lease_cannot_exist,
        statement="alter table faultline.active drop constraint a_running_job_is_leased",
        given={"column": "lease_until"},
    ),
    Mutant(
        "a claim draws its number before it has its rows",
        rule_2.test_whoever_locks_later_has_the_higher_token,
        (
            (
                "claim",
                "  -- Materialised",
                "  number := faultline.epoch() + nextval('faultline.tokens');\n  -- Materialised",
            ),
            ("claim", "  number := faultline.epoch() + nextval('faultline.tokens');\n  moment", "  moment"),
        ),
    ),
    Mutant(
        "a claim draws a number whether it finds work or not",
        rule_2.test_a_claim_that_finds_nothing_draws_no_number,
        (
            (
                "claim",
                "  if picked is null then",
                "  perform nextval('faultline.tokens');\n  if picked is null then",
            ),
        ),
    ),
    Mutant(
        "a claim forgets the row's last token",
        rule_2.test_a_token_is_raised_above_the_rows_last_one,
        (("claim", "greatest(number, job.token + 1)", "number"),),
    ),
    Mutant(
        "whoever waited for the epoch raises it again",
        epoch.test_claimers_that_wait_for_the_one_who_raises_the_epoch_do_not_raise_it_again,
        (("epoch", "where setting.system_identifier <> server\n       or setting.timeline > here;", ";"),),
    ),
    Mutant(
        "the epoch does not notice another server",
        epoch.test_another_server_issues_higher_tokens,
        (("epoch", "known.system_identifier = server and", ""),),
    ),
    Mutant(
        "the epoch does not notice a timeline that started again",
        epoch.test_a_timeline_that_started_again_raises_the_base,
        (("epoch", "\n       or setting.timeline > here;", ";"),),
    ),
    Mutant(
        "complete does not ask for the claim",
        rule_3.test_the_right_token_with_a_wrong_claim_is_refused,
        (("complete", "\n    and job.claim = complete.claim", ""),),
        given={"verb": "complete"},
    ),
    Mutant(
        "complete does not ask for the claim, after a lossy failover",
        rule_3.test_a_reissued_token_is_harmless,
        (("complete", "\n    and job.claim = complete.claim", ""),),
        given={"verb": "complete"},
    ),
    Mutant(
        "snooze and release do not ask for the token",
        rule_3.test_the_right_claim_with_a_wrong_token_is_refused,
        (("give_back", "\n    and job.token = give_back.token", ""),),
        given={"verb": "snooze"},
    ),
    Mutant(
        "a view shows the claim",
        rule_3.test_the_claim_is_in_no_view_and_in_no_answer,
        statement="create view faultline.leases as select id, token, claim from faultline.active",
    ),
]
