"""Mutants of what commits together, what is answered, what is durable, what is found, and what stays."""

from proof.mutants.mutant import Mutant, Patch, sql

TOGETHER = "tests/promises/test_07_effects_commit_with_the_transition.py"
UNKNOWN = "tests/promises/test_08_rows_answer_for_unknown_outcomes.py"
DURABLE = "tests/promises/test_09_what_matters_is_durable.py"
FOUND = "tests/promises/test_11_a_job_on_the_move_is_found.py"
ANSWERED = "tests/promises/test_09_what_is_answered_is_durable.py"
KEYS = "tests/sql/test_keys.py"

READ_DURABLY = "perform faultline.read_durably();"

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

MUTANTS = (
    Mutant(
        "complete leaves no entry in the ledger", "G12",
        f"{TOGETHER}::test_both_or_neither",
        (sql(
            "complete", "  if done.keep is distinct from 'nothing' then", "  if false then",
        ),),
    ),
    Mutant(
        "a batch of completions leaves no entries", "G12",
        f"{TOGETHER}::test_a_batch_does_not_end_without_its_entries",
        (sql("complete_many", "    where gone.lane <> all (silent)\n", "    where false\n"),),
    ),
    Mutant(
        "the ledger is unique by token", "G3",
        f"{TOGETHER}::test_a_job_ends_once_whatever_is_written_by_hand",
        (
            Patch(
                "sql/migrations/0004_ledger.sql", "constraint a_job_ends_once primary key (job_id, slot),",
                "constraint a_job_ends_once primary key (job_id, slot, token),",
            ),
            sql("partitions", "primary key (job_id, slot)'", "primary key (job_id, slot, token)'"),
        ),
    ),
    Mutant(
        "a cancel leaves no entry", "G12",
        "tests/sql/test_cancel.py::test_a_running_jobs_worker_learns_it_from_its_next_beat_and_commits_nothing",
        (sql("cancel", "  perform faultline.write_ledger(held, 'cancelled', faultline.now(), error => cancel.reason);\n", ""),),
    ),
    Mutant(
        "replaying what is not dead is let pass", "G12",
        "tests/sql/test_replay.py::test_only_a_dead_job_can_be_replayed",
        (sql("replay", "if place <> 'dead' then", "if false then"),),
    ),
    Mutant(
        "a cancelled job's row stays", "G12",
        "tests/sql/test_cancel.py::test_a_running_jobs_worker_learns_it_from_its_next_beat_and_commits_nothing",
        (sql(
            "cancel", "delete from faultline.active as job where job.id = cancel.job_id returning job.* into held;",
            "select job.* into held from faultline.active as job where job.id = cancel.job_id;",
        ),),
    ),
    Mutant(
        "outcome does not wait", "G7",
        f"{UNKNOWN}::test_the_answer_waits_for_a_backend_that_is_still_committing",
        (sql("outcome", "for no key update;", ";"),),
    ),
    Mutant(
        "outcome does not ask for the claim", "G7",
        f"{UNKNOWN}::test_the_claim_of_another_is_told_nothing",
        (sql("outcome", "\n    and entry.claim = outcome.claim", ""),),
    ),
    Mutant(
        "a key is taken and looked for in one statement", "G11",
        f"{UNKNOWN}::test_an_enqueue_with_a_key_may_be_repeated_until_it_is_answered",
        (sql("take_key", TWO_STATEMENTS, ONE_STATEMENT),),
    ),
    Mutant(
        "a key goes with its job", "G11",
        f"{KEYS}::test_a_key_gives_the_same_job_after_it_finished",
        (sql(
            "lapse_key", "set until = moment + named.keep_for", "set until = moment - interval '1 second'"
        ),),
    ),
    Mutant(
        "a key does not look at what was asked", "G11",
        f"{KEYS}::test_another_request_under_the_same_key_is_refused",
        (sql("take_key", "elsif held.request <> take_key.request then", "elsif false then"),),
    ),
    Mutant(
        "a key's window runs from the enqueue", "G11",
        f"{KEYS}::test_a_key_never_lapses_while_its_job_lives",
        (sql(
            "take_key",
            "insert into faultline.keys (scope, key, job_id, request, keep_for)\n"
            "    values (take_key.scope, take_key.key, take_key.job_id, take_key.request, take_key.keep_for)",
            "insert into faultline.keys (scope, key, job_id, request, keep_for, until)\n"
            "    values (take_key.scope, take_key.key, take_key.job_id, take_key.request, take_key.keep_for,\n"
            "            moment + take_key.keep_for)",
        ),),
    ),
    Mutant(
        "nothing is raised to durable", "G1",
        f"{DURABLE}::test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer",
        (sql("be_durable", "perform set_config('synchronous_commit', 'on', true);", "null;"),),
    ),
    Mutant(
        "durable by a SET clause, which ends before the commit", "G1",
        f"{DURABLE}::test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer",
        (sql("be_durable", "language plpgsql\nas", "language plpgsql\nset synchronous_commit = on\nas"),),
    ),
    Mutant(
        "durable is lowered", "G1",
        f"{DURABLE}::test_what_is_enough_is_left_alone",
        (sql(
            "be_durable",
            "if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then", "if true then",
        ),),
    ),
    Mutant(
        "an enqueue may be lost in a crash", "G1",
        f"{DURABLE}::test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer",
        (sql("enqueue_many", "  perform faultline.be_durable();\n", ""),),
    ),
    *(
        Mutant(
            f"{what} is told before a standby has it", "G1",
            f"{ANSWERED}::test_an_answer_from_rows_waits_for_the_standby",
            (sql(verb, READ_DURABLY, "null;"),),
        )
        for what, verb in (
            ("a key that is found", "take_key"), ("the outcome of a lease", "outcome"),
            ("a success of which no row is kept", "outcome_in"),
            ("a claim that is asked for again", "claimed_again"), ("a second cancel", "cancel"),
            ("a second replay", "replay_many"), ("a second revocation", "revoke_key"),
            ("an end that was waited for", "get_job"),
        )
    ),
    Mutant(
        "an answer from rows waits for the standbys only where the session would", "G1",
        f"{ANSWERED}::test_an_answer_from_rows_waits_for_the_standby",
        (sql("read_durably", "    perform faultline.be_durable();\n", ""),),
    ),
    Mutant(
        "an answer from rows takes a number and writes nothing", "G1",
        f"{ANSWERED}::test_an_answer_from_rows_waits_for_the_standby",
        (sql("read_durably", "pg_logical_emit_message(true, 'faultline', ''::text)", "pg_current_xact_id()"),),
    ),
    Mutant(
        "an answer from rows writes where nothing can be written", "G1",
        f"{ANSWERED}::test_where_nothing_can_be_written_a_result_is_told_as_it_stands",
        (sql("read_durably", " and current_setting('transaction_read_only') = 'off'", ""),),
    ),
    Mutant(
        "an answer from rows writes where there is no standby", "G1",
        f"{ANSWERED}::test_without_synchronous_standbys_an_answer_writes_nothing",
        (sql("read_durably", "current_setting('synchronous_standby_names') <> ''", "true"),),
    ),
    Mutant(
        "a result is given before a standby has it", "G1",
        f"{ANSWERED}::test_a_result_is_given_once_a_standby_has_it",
        (Patch(
            "client/handle.py", 'self._sender.run(calls.get_confirmed(self.id), "result")',
            'self._sender.run(calls.get(self.id), "result")',
        ),),
    ),
    Mutant(
        "an awaited result is given before a standby has it", "G1",
        f"{ANSWERED}::test_a_result_is_given_once_a_standby_has_it",
        (Patch(
            "client/handle.py", "self._sender.arun(calls.get_confirmed(self.id))",
            "self._sender.arun(calls.get(self.id))",
        ),),
    ),
    Mutant(
        "over HTTP an end that was waited for is told before a standby has it", "G1",
        "tests/http/test_asking_again.py::test_an_end_that_was_waited_for_is_told_once_a_standby_has_it",
        (Patch("server/http/routes/jobs.py", ", confirmed=True", ""),),
    ),
    Mutant(
        "over gRPC an end that was waited for is told before a standby has it", "G1",
        "tests/grpc/test_asking_again.py::test_an_end_that_was_waited_for_is_told_once_a_standby_has_it",
        (Patch("server/grpc/jobs_service.py", "calls.get_unread(request.id, confirmed=True)", "calls.get_unread(request.id)"),),
    ),
    Mutant(
        "a job that moved is not looked for again", "G12",
        f"{FOUND}::test_a_verb_called_while_a_job_moves_waits_and_then_acts",
        (sql("lock_job", "    if found then\n      return place;\n    end if;", "    return place;"),),
    ),
    Mutant(
        "a job that moved is not found", "G12",
        f"{FOUND}::test_a_verb_called_while_a_job_moves_waits_and_then_acts",
        (sql("lock_job", "  end loop;", "    raise exception 'there is no job' using errcode = 'LS003';\n  end loop;"),),
    ),
    Mutant(
        "a promoted job is forgotten", "G1",
        "tests/sql/test_promote.py::test_what_is_due_moves_and_its_queues_are_told",
        (sql("promote", "    from taken\n    returning lane", "    from taken where false\n    returning lane"),),
    ),
)  # fmt: skip
