"""Mutants of rules 7 to 11: what commits together, what is answered, what is durable, what is found."""

from tests.promises import test_07_effects_commit_with_the_transition as rule_7
from tests.promises import test_08_rows_answer_for_unknown_outcomes as rule_8
from tests.promises import test_09_what_matters_is_durable as rule_9
from tests.promises import test_11_a_job_on_the_move_is_found as rule_11
from tests.promises.sabotage.mutant import NO_LOCK, Mutant

TWO_STATEMENTS = """\
    insert into faultline.keys (scope, key, job_id, request, keep_for)
    values (take_key.scope, take_key.key, take_key.job_id, take_key.request, take_key.keep_for)
    on conflict do nothing;
    if found then
      return take_key.job_id;
    end if;
"""
ONE_STATEMENT = """\
    with fresh as (
      insert into faultline.keys (scope, key, job_id, request, keep_for)
      values (take_key.scope, take_key.key, take_key.job_id, take_key.request, take_key.keep_for)
      on conflict do nothing
      returning keys.job_id)
    select coalesce(
      (select fresh.job_id from fresh),
      (select named.job_id from faultline.keys as named
       where named.scope = take_key.scope and named.key = take_key.key))
    into held.job_id;
    return held.job_id;
"""

MUTANTS = [
    Mutant(
        "complete leaves no entry in the ledger",
        rule_7.test_both_or_neither,
        (
            (
                "complete",
                "perform faultline.enter(done, 'succeeded', faultline.now(), result => complete.result);",
                "null;",
            ),
        ),
        given={"verb": "complete"},
    ),
    Mutant(
        "the ledger is unique by token",
        rule_7.test_a_job_ends_once_whatever_is_written_by_hand,
        statement="alter table faultline.ledger drop constraint a_job_ends_once,"
        " add primary key (job_id, slot, token)",
    ),
    Mutant(
        "outcome does not wait",
        rule_8.test_the_answer_waits_for_a_backend_that_is_still_committing,
        (("outcome", *NO_LOCK),),
        given={"verb": "complete"},
    ),
    Mutant(
        "outcome does not ask for the claim",
        rule_8.test_somebody_elses_claim_is_told_nothing,
        (("outcome", "\n    and entry.claim = outcome.claim", ""),),
    ),
    Mutant(
        "a key is taken and looked for in one statement",
        rule_8.test_an_enqueue_with_a_key_may_be_repeated_until_it_is_answered,
        (("take_key", TWO_STATEMENTS, ONE_STATEMENT),),
    ),
    Mutant(
        "nothing is raised to durable",
        rule_9.test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer,
        (("be_durable", "perform set_config('synchronous_commit', 'on', true);", "null;"),),
        given={"set_to": "off"},
    ),
    Mutant(
        "durable by a SET clause, which ends before the commit",
        rule_9.test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer,
        (("be_durable", " LANGUAGE plpgsql\nAS", " LANGUAGE plpgsql\n SET synchronous_commit TO 'on'\nAS"),),
        given={"set_to": "off"},
    ),
    Mutant(
        "durable is lowered",
        rule_9.test_what_is_enough_is_left_alone,
        (
            (
                "be_durable",
                "if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then",
                "if true then",
            ),
        ),
        given={"set_to": "remote_apply"},
    ),
    Mutant(
        "a job that moved is not looked for again",
        rule_11.test_whoever_asks_while_a_job_moves_waits_and_then_acts,
        (("hold", "    if found then\n      return place;\n    end if;", "    return place;"),),
        given={"move": "promote", "end": "commit"},
    ),
    Mutant(
        "a job that moved is not found",
        rule_11.test_whoever_asks_while_a_job_moves_waits_and_then_acts,
        (
            (
                "hold",
                "  end loop;",
                "    raise exception 'there is no job' using errcode = 'LS003';\n  end loop;",
            ),
        ),
        given={"move": "reap", "end": "commit"},
    ),
]
