"""Mutants of the cases in docs/cases.md: each takes away what keeps one of them harmless."""

from proof.mutants.mutant import Mutant, Patch, sql, worker

TABLES = "tests/cases/test_x_hands_in_the_tables.py"
CALLS = "tests/cases/test_x_calls_that_break_the_rules.py"
BLOCK = "proof/cases/test_x_the_handlers_own_transaction.py"
DATABASE = "proof/cases/test_d_databases_that_misbehave.py"

LANES = "tests/sql/test_quiet_lanes.py"

MUTANTS = (
    Mutant(
        "a lead may last a thousand years", "G8",
        f"{LANES}::test_a_lead_has_a_bound",
        (sql("lead", "if coalesce(extract(epoch from lead.lead_for) not between 0 and 60, true) then", "if false then"),),
    ),
    Mutant(
        "intervals are bounded only as they are compared", "G8",
        "tests/bad_input/test_i8_intervals.py::test_i8_an_enqueue_refuses_it",
        (
            Patch("sql/migrations/0018_bounds.sql", "or date_part('year', value) <= 10 and least(", "or true or least("),
            Patch("sql/migrations/0018_bounds.sql", "and date_part('day', value) between -3660 and 3660", ""),
            Patch(
                "sql/migrations/0018_bounds.sql",
                "and date_part('year', value) = 0 and date_part('month', value) = 0 and abs(date_part('day', value)) <= 30", "",
            ),
        ),
        red_by=("DatetimeFieldOverflow",),
    ),
    Mutant(
        "the delay of a failure is bounded only as it is compared", "G8",
        "tests/bad_input/test_i8_intervals.py::test_i8_the_delay_of_a_failure_is_at_most_thirty_days_when_it_is_added",
        (
            sql(
                "put_back", "make_interval(secs => least(greatest(extract(epoch from judged.wait), 0), 30 * 86400))",
                "least(greatest(judged.wait, interval '0'), interval '30 days')",
            ),
        ),
        red_by=("DatetimeFieldOverflow",),
    ),
    Mutant(
        "a round may have a negative tick", "G8",
        "tests/sql/test_round.py::test_a_tick_has_bounds",
        (sql("round", "if coalesce(extract(epoch from round.tick) not between 0.000001 and 86400, true) then", "if false then"),),
    ),
    Mutant(
        "a connection outlives the block that it was lent for", "G2",
        "tests/worker/test_transaction.py::test_a_connection_used_after_its_block_reaches_no_other_jobs_transaction",
        (worker("transactions/transaction_base", "            end_loan(\n                self._lent,", "            repr(\n                self._lent and"),),
    ),
    Mutant(
        "a coroutine that swallows its cancellation has no timeout", "G8",
        "tests/worker/test_lost_leases.py::test_p8_a_coroutine_that_swallows_its_cancellation_fails_by_its_timeout",
        (worker("execution/deadlines", "            self.give_up(attempt)\n", "            pass\n"),),
    ),
    Mutant(
        "a short gap carries a long one forward", "G8",
        "tests/promises/test_06_an_outage_is_not_a_crash.py::test_short_gaps_do_not_postpone_without_end_what_a_long_one_spares",
        (sql("round", "    slot := least(greatest(ceil(log(2.0, extract(epoch from passed) * 4)), 1), 19);", "    slot := 20;"),),
    ),
    Mutant(
        "a watchdog that makes all rounds and never reaps stops the reaping", "G8",
        "tests/watchdog/test_rounds.py::test_who_makes_all_rounds_and_never_reaps_does_not_stop_it",
        (sql("round", "least(row.round_at, row.reaped_at) <", "row.round_at <"),),
    ),
    Mutant(
        "a session that holds the row of the rounds stops the reaping", "G8",
        "tests/watchdog/test_rounds.py::test_who_holds_the_row_of_the_rounds_does_not_stop_the_reaping",
        (sql("round", "least(row.round_at, row.reaped_at) <", "row.reaped_at > '-infinity' and row.reaped_at <"),),
    ),
    Mutant(
        "quiet lanes are never walked", "G8",
        f"{LANES}::test_once_a_minute_quiet_lanes_are_walked_too",
        (sql("reap", "where far and quiet.top = 0", "where false"),),
    ),
    Mutant(
        "a lane that holds jobs is taken for an empty one", "G8",
        f"{LANES}::test_a_lane_that_was_found_empty_is_as_new",
        (sql("quiet_lanes", "\n      and not exists (select from faultline.active as job where job.lane = lane.id)", ""),),
    ),
    Mutant(
        "one document that is none fails the list it is in", "G13",
        "tests/cli/test_damaged.py::test_jobs_list_shows_a_damaged_row_among_the_others",
        (sql("readable", "exception when others then\n  return null;\n", ""),),
        red_by=("BadDocument", "InvalidTextRepresentation", "AssertionError", "Failed"),
    ),
    Mutant(
        "a queue is removed under a job that is on its way into it", "G1",
        "tests/sql/test_remove_queues.py::test_a_job_whose_transaction_is_open_is_not_lost",
        (sql("remove_queues", "lock table faultline.lanes in access exclusive mode;", "null;"),),
    ),
    Mutant(
        "a job whose lane was deleted falls through a join", "G1",
        f"{TABLES}::test_x1_a_job_whose_lane_was_deleted_still_fails_into_its_retry",
        (sql("put_back", "left join faultline.lanes", "join faultline.lanes"),),
    ),
    Mutant(
        "a success without a lane leaves no entry", "G12",
        f"{TABLES}::test_x1_a_job_whose_lane_was_deleted_still_succeeds_with_an_entry",
        (sql("complete", "done.keep is distinct from 'nothing' then", "done.keep <> 'nothing' then"),),
    ),
    Mutant(
        "a job number that comes again may end again", "G12",
        f"{TABLES}::test_x2_numbers_that_were_reset_by_hand_end_no_job_twice",
        (
            Patch(
                "sql/migrations/0004_ledger.sql", "constraint a_job_ends_once primary key (job_id, slot),",
                "constraint a_job_ends_once primary key (job_id, slot, token),",
            ),
            sql("partitions", "primary key (job_id, slot)'", "primary key (job_id, slot, token)'"),
        ),
    ),
    Mutant(
        "tokens that were reset begin again", "G14",
        f"{TABLES}::test_x2_tokens_that_were_reset_by_hand_still_grow_for_each_job",
        (sql("claim", "greatest(number, job.token + 1)", "number"),),
    ),
    Mutant(
        "strays of the ledger are deleted, not moved", "G12",
        f"{TABLES}::test_x3_a_ledger_without_a_range_for_the_newest_jobs_keeps_their_ends",
        (sql("partitions", "'insert into faultline.ledger_%s select * from strays'", "'insert into faultline.ledger_%s select * from strays where false'"),),
    ),
    Mutant(
        "what a queue keeps does not reach its lanes", "G12",
        f"{TABLES}::test_x4_a_queue_told_to_keep_nothing_while_its_job_runs_still_fences_it",
        (sql("set_retention", "  update faultline.lanes as lane set keep = set_retention.what where lane.queue = set_retention.queue;\n", ""),),
    ),
    Mutant(
        "a lease granted later than now is taken", "G5",
        f"{TABLES}::test_x5_the_clock_set_back_between_claim_and_reap_takes_nothing_early",
        (sql("reap", "and job.lease_until < moment", "and (job.lease_until < moment or job.claimed_at > moment)"),),
    ),
    Mutant(
        "complete does not ask for the token", "G4",
        f"{CALLS}::test_x6_a_claim_id_used_twice_still_tells_an_old_lease_from_a_new_one",
        (sql("complete", "\n    and job.token = complete.token", ""),),
    ),
    Mutant(
        "a lease named twice in a beat is answered four times", "G10",
        f"{CALLS}::test_x7_a_beat_that_names_a_lease_twice_gets_one_answer_for_each_time",
        (sql("heartbeat", "and mine.claim = beat.claim limit 1", "and mine.claim = beat.claim"),),
    ),
    Mutant(
        "workers of one name are one worker", "G2",
        f"{CALLS}::test_x8_two_workers_of_one_name_do_not_keep_each_others_leases",
        (sql(
            "worker_started", "  insert into faultline.workers (",
            "  select known.id into number from faultline.workers as known where known.name = worker_started.name;\n"
            "  if found then return number; end if;\n  insert into faultline.workers (",
        ),),
    ),
    Mutant(
        "one of two settlings in a transaction may be refused alone", "G3",
        f"{CALLS}::test_x9_a_transaction_that_also_settles_for_another_worker_settles_nothing",
        (sql("complete", "perform faultline.refuse(complete.job_id, complete.token);", "return;"),),
    ),
    Mutant(
        "a lease said twice in one batch is completed twice", "G3",
        "tests/sql/test_complete_many.py::test_the_same_lease_twice_in_one_batch_gets_through_once",
        (sql(
            "complete_many",
            "\n     and deleted <> (select count(distinct done.id) from unnest(through_ids) as done (id)) then", " then",
        ),),
        red_by=("RaiseException",),
    ),
    Mutant(
        "a claim takes any room, none and less than none", "G13",
        "tests/sql/test_claim.py::test_room_goes_from_1_to_1000",
        (sql("claim", "if coalesce(max_jobs, 0) not between 1 and 1000 then", "if false then"),),
    ),
    Mutant(
        "a lease may begin longer than its deadline", "G9",
        "tests/sql/test_claim.py::test_a_lease_never_begins_longer_than_the_hard_end",
        (sql(
            "claim", "moment + least(coalesce(job.lease_for, claim.lease), coalesce(job.timeout, claim.timeout))",
            "moment + coalesce(job.lease_for, claim.lease)",
        ),),
    ),
    Mutant(
        "complete goes by the search_path of its caller", "G4",
        "tests/sql/test_roles.py::test_every_verb_that_runs_as_its_owner_has_a_fixed_search_path",
        (sql("complete", "set search_path = pg_catalog, pg_temp\n", ""),),
    ),
    Mutant(
        "a restored backup's leases are told apart by their tokens", "G14",
        "tests/cases/test_d17_a_backup_is_restored.py::test_d17_a_worker_of_the_future_cannot_settle_what_the_past_has_claimed",
        (sql("complete", "\n    and job.claim = complete.claim", ""),),
    ),
    Mutant(
        "a success waits for no disk where its role asked for less", "G1",
        f"{DATABASE}::test_d7_a_success_outlives_a_crash_though_its_role_asked_for_less",
        (sql("be_durable", "perform set_config('synchronous_commit', 'on', true);", "null;"),),
    ),
    Mutant(
        "the pacemaker connects for each beat", "G10",
        f"{DATABASE}::test_d9_when_no_connection_is_left_an_enqueue_fails_at_once_and_leases_hold",
        (worker("heartbeat/pacemaker", "        self.seen_at = sent\n", "        self.seen_at = sent\n        self._hang_up()\n"),),
    ),
    Mutant(
        "a table that is locked for long is the worker's end", "G10",
        "tests/worker/test_concurrency.py::test_d11_a_table_locked_for_long_costs_no_attempt",
        (Patch("store/session.py", '_NOT_NOW = ("40", "55P03", ', '_NOT_NOW = ("40", '), worker("claiming/claimer", "claim.ask, refusals=True)", "claim.ask)")),
        red_by=("LockNotAvailable",),
    ),
    Mutant(
        "a reply that is nonsense is the worker's end", "G7",
        "proof/cases/test_n_networks_that_misbehave.py::test_n9_a_reply_that_is_nonsense_leaves_no_bad_state",
        (Patch("store/driver/sqlstate.py", " or type(fault) in _NO_REPLY", ""), worker("claiming/claimer", "claim.ask, refusals=True)", "claim.ask)")),
        red_by=("DatabaseError",),
    ),
    Mutant(
        "a database that is away by its name is the worker's end", "G10",
        f"{DATABASE}::test_x16_a_database_that_is_renamed_under_its_worker_is_waited_for",
        (Patch("store/session.py", "OUTAGE = (CannotConnect, ServerUnavailable, ReadOnlyServer)", "OUTAGE = (ServerUnavailable, ReadOnlyServer)"), worker("claiming/claimer", "claim.ask, refusals=True)", "claim.ask)")),
    ),
    Mutant(
        "the worker believes whatever it hears", "G13",
        f"{DATABASE}::test_x17_wake_ups_of_other_clients_are_only_hints",
        (worker("worker", "        elif not queue or queue in self.config.queues:\n", "        assert not queue or queue in self.config.queues\n        if queue is not None:\n"),),
    ),
    Mutant(
        "a broken connection is kept while the rows are asked", "G7",
        f"{DATABASE}::test_x18_a_worker_with_one_of_everything_still_resolves_a_lost_commit",
        (worker("transactions/transaction", "            await self._agive_back()\n            await self._aresolve(broken)\n", "            await self._aresolve(broken)\n"),),
    ),
    Mutant(
        "a hint that fails fails the enqueue", "G1",
        "tests/client/test_wakeups.py::test_a_hint_that_fails_does_not_fail_the_enqueue",
        (Patch("store/driver/prepared.py", "            except Error:  # a failed hint does not fail the call\n                hint = None", "            except Error:\n                raise RuntimeError"),),
        red_by=("RuntimeError",),
    ),
    Mutant(
        "a session that was told to forget its statements is believed to know them", "G1",
        "tests/store/test_calls_without_a_cursor.py::test_a_session_that_was_told_to_forget_its_statements_is_told_them_again",
        (Patch("store/driver/prepared.py", "DISCARD ALL\n            self._names.clear()\n", "\n            raise RuntimeError\n"),),
        red_by=("RuntimeError",),
    ),
    Mutant(
        "an attempt refused in a batch is taken for settled", "G4",
        "tests/worker/test_settling.py::test_one_busy_one_late_and_one_cancelled_do_not_hold_up_their_batch",
        (worker("settlement/settler", "self._report_refused(attempt, answer.reason or \"gone\", answer.current_token)\n            ended", "pass\n            ended"),),
    ),
    Mutant(
        "a worker does not look at its own deadline before it commits", "G5",
        "tests/worker/test_transaction.py::test_a_handler_that_swallows_the_loss_altogether_does_not_succeed",
        (worker("transactions/transaction_base", "if attempt.stopping or attempt.seconds_left(self._pools.lease_table) <= 0:\n            reason", "if attempt.stopping:\n            reason"),),
    ),
    Mutant(
        "a handler may end its transaction by hand", "G3",
        f"{BLOCK}::test_x10_a_handler_that_ends_the_transaction_itself_does_not_succeed",
        (worker("transactions/transaction_base", "if self._closed_by_hand or self._conn.info.transaction_status == TransactionStatus.IDLE:", "if False:"),),
    ),
    Mutant(
        "a job may have two blocks at once", "G3",
        f"{BLOCK}::test_x11_a_block_inside_a_block_of_the_same_job_is_refused",
        (worker("transactions/transaction_base", "        if self._attempt.phase in BLOCK_OPEN:\n", "        if False:\n"),),
    ),
    Mutant(
        "a success is recorded while its block is open", "G3",
        f"{BLOCK}::test_x12_a_handler_that_returns_with_its_block_open_has_failed",
        (worker("execution/outcomes", "    if attempt.phase is not WORKING and attempt.phase in BLOCK_OPEN:\n", "    if False:\n"),),
    ),
    Mutant(
        "a session is lent on as it was left", "G13",
        f"{BLOCK}::test_x13_what_a_handler_leaves_in_its_session_the_next_one_does_not_find",
        (worker("transactions/transaction", "AS_NEW = b\"reset session authorization; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp;\"", "AS_NEW = b\"select 1\""),),
    ),
    Mutant(
        "a handler ends the transaction that it was lent", "G12",
        "tests/worker/test_transaction.py::test_commit_and_rollback_are_not_the_handlers",
        (Patch("store/lent.py", "    async def commit(self) -> NoReturn:\n        raise _ends_with_its_block(\"commit\")\n", ""),),
    ),
    Mutant(
        "a reset that goes with a BEGIN is undone by its rollback", "G13",
        "tests/store/test_session_resets.py::test_a_reset_goes_with_the_next_begin_and_stays_though_that_rolls_back",
        (Patch("store/driver/prepared.py", 'b"BEGIN; " + reset + b"; COMMIT; "', 'reset + b"; "'),),
    ),
    Mutant(
        "a reset waits for the next BEGIN on its session", "G13",
        "tests/store/test_session_resets.py::test_a_reset_does_not_wait_for_a_begin_that_never_comes",
        (Patch("store/pool/async_pool.py", "                self._send_resets_soon()\n", ""),),
        red_by=("AssertionError", "TimeoutError"),
    ),
    Mutant(
        "a session that its BEGIN could not reset fails the job", "G13",
        "tests/worker/test_transaction.py::test_a_session_that_its_begin_could_not_reset_is_left_for_another",
        (worker("transactions/transaction", "if reset is None or not isinstance(error, Exception):", "if True:"),),
    ),
    Mutant(
        "a session is lent before the reply to its reset is read", "G13",
        "tests/store/test_session_resets.py::test_a_session_that_could_not_be_reset_is_not_lent_again",
        (Patch("store/driver/resetting.py", "        if result.status not in _DONE:\n            return False\n", ""), Patch("store/driver/resetting.py", "return all(result.status in _DONE for result in results)", "return True")),
    ),
    Mutant(
        "a commit is believed before it is answered", "G3",
        f"{BLOCK}::test_x14_a_constraint_that_fails_at_the_commit_leaves_neither_rows_nor_success",
        (
            worker("transactions/transaction", "            await self._acomplete()\n", "            self._attempt.phase = AttemptPhase.COMMITTED\n            await self._acomplete()\n"),
            worker("transactions/transaction", "            self._complete()\n", "            self._attempt.phase = AttemptPhase.COMMITTED\n            self._complete()\n"),
        ),
    ),
    Mutant(
        "a forked child speaks on its parent's connection", "G2",
        f"{BLOCK}::test_x15_a_forked_child_cannot_commit_for_its_parent",
        (worker("transactions/transaction_base", "if os.getpid() != self._pools.pid:", "if False:"),),
    ),
    Mutant(
        "a frozen pacemaker is kept", "G10",
        "proof/cases/test_t_clocks_and_cancels.py::test_x25_a_pacemaker_that_is_frozen_alone_is_replaced",
        (worker("heartbeat/pacemaker_process", "                    self.process.kill()\n                continue\n", "                    pass\n                continue\n"),),
    ),
)  # fmt: skip
