"""Mutants of the Python side: what the worker, its pacemaker and its settler add to what SQL decides."""

from faultline.sql.columns import columns
from proof.mutants.mutant import Mutant, Patch, sql, worker

TRANSACTION = "tests/worker/test_transaction.py"
BROKEN = "tests/worker/test_broken_commit.py"
LOST = "tests/worker/test_lost_leases.py"
PACEMAKER = "tests/worker/test_pacemaker.py"

EARLY = "tests/worker/test_early_claims.py"
BEHIND = "tests/worker/test_claims_behind.py"
EFFECTS = "tests/promises/test_12_an_idempotency_key_is_one_jobs.py"
ANOTHER_SEED = "faultline.new_key_seed()"

MUTANTS = (
    Mutant(
        "that a job needs a database is told at each job", "G13",
        "tests/worker/test_backend.py::test_job_transaction_without_a_database_costs_no_attempt_and_is_told_with_the_remedy",
        (worker("claiming/unserved_tasks", 'and self._seldom.allows(f"database {task}")', ""),),
        red_by=("ValueError",),
    ),
    Mutant(
        "a worker without a database starts with a task that needs one", "G7",
        "tests/worker/test_backend.py::test_a_worker_without_a_database_does_not_start_for_a_task_that_says_it_needs_one",
        (worker("claiming/unserved_tasks", "    if needs:\n", "    if False:\n"),),
    ),
    Mutant(
        "a wake-up behind an early claim is taken for answered by it", "G1",
        f"{EARLY}::test_a_wake_up_that_comes_behind_an_early_claim_is_followed_by_another_claim",
        (worker("claiming/claimer", "if not self._ahead or self._ahead[0].wakes == self.wakes:", "if True:"),),
    ),
    Mutant(
        "a worker that leaves does not hear its early claim out", "G8",
        f"{EARLY}::test_a_closed_claimer_waits_for_the_reply_to_its_early_claim",
        (worker("claiming/claimer", "while self._ahead or not self._closing.is_set():", "while not self._closing.is_set():"),),
    ),
    Mutant(
        "two speak over one line, the second into an early call", "G7",
        f"{BEHIND}::test_an_ordinary_call_behind_them_waits_for_the_last",
        (Patch("store/session.py", "            await self._until_free()", "            pass"),),
        red_by=("OperationalError", "ServerUnavailable"),
    ),
    Mutant(
        "the reply to a call that was given up is heard by the next", "G3",
        f"{BEHIND}::test_no_call_hears_the_reply_to_another",
        (Patch("store/driver/exchange.py", "            self.next.fail()", "            self.next.begin()"),),
    ),
    Mutant(
        "a line that is closed goes on listening for what is under way", "G10",
        f"{BEHIND}::test_a_line_that_is_closed_leaves_its_number_though_calls_are_under_way",
        (Patch("store/driver/async_connection.py", "self.fail_all()  # or", "pass  # or"),
         Patch("store/driver/async_connection.py", "            self._watch.close()\n        await super().close()",
               "            pass\n        await super().close()"),
         Patch("store/driver/exchange.py", "os.dup(pgconn.socket)", "pgconn.socket")),
    ),
    Mutant(
        "claims under way are forgotten when there is asked for more", "G9",
        f"{BEHIND}::test_claims_under_way_count_for_the_room_that_is_left",
        (worker("claiming/claimer", "coming = sum(rooms)", "coming = 0"),),
    ),
    Mutant(
        "a claim that was taken is asked again when its line broke", "G5",
        f"{BEHIND}::test_a_claim_that_was_taken_is_not_asked_again_though_its_line_broke",
        (worker("claiming/claim_request", "        if self.is_answered:\n", "        if False:\n"),),
        red_by=("AttributeError",),
    ),
    Mutant(
        "a worker that was idle for long takes itself for fast", "G13",
        f"{BEHIND}::test_nor_is_a_worker_taken_for_fast_because_it_was_idle_for_long",
        (worker("state", "max(at, self._idle_since)", "self._idle_since"),),
    ),
    Mutant(
        "a claim that lay ready for long does not look back", "G1",
        "tests/worker/test_lane_cursors.py::test_a_claim_that_lay_ready_for_too_long_is_not_sent",
        (worker("claiming/lane_cursors", "return now >= self.look_at", "return False"),),
    ),
    Mutant(
        "what a claim stepped over that began too far behind others is taken for passed", "G1",
        "tests/worker/test_lane_cursors.py"
        "::test_behind_one_that_began_further_than_those_before_it_came_the_next_begins_where_they_ended",
        (worker("claiming/lane_cursors", "del passed[lane]  # the next", "pass  # the next"),),
    ),
    Mutant(
        "a claim behind others does not tell where it began", "G1",
        f"{BEHIND}::test_what_a_claim_behind_others_stepped_over_is_claimed_next",
        (worker("claiming/claim_request", "is_full=self.is_full, begins=self.begins", "is_full=self.is_full"),),
    ),
    Mutant(
        "a queue that is at its limit is looked at without a pause", "G13",
        "tests/worker/test_lane_cursors.py::test_a_queue_at_its_limit_need_not_be_looked_at",
        (worker("claiming/claimer", "if cursors.stepped_over and self._has_room(queue)", "if cursors.stepped_over"),),
    ),
    Mutant(
        "a claim that is found lost when it comes late is taken for one that found nothing", "G1",
        "tests/worker/test_lane_cursors.py::test_a_late_claim_whose_leases_are_lost_has_not_found_nothing",
        (worker("claiming/claim_request", "            self.found_jobs = True\n            self.take(rows)\n", "            self.take(rows)\n"),),
    ),
    Mutant(
        "behind a claim that came back short the next does not look at what was passed just now", "G1",
        "tests/worker/test_lane_cursors.py"
        "::test_behind_a_claim_that_came_back_short_the_next_looks_at_what_was_passed_just_now",
        (worker("claiming/lane_cursors", "self._is_full = is_full", "self._is_full = True"),),
    ),
    Mutant(
        "the end of an early call is taken for the end of the one behind it", "G7",
        f"{BEHIND}::test_an_ordinary_call_behind_them_waits_for_the_last",
        (Patch("store/session.py", "            if self._early is early:\n                self._early = None\n",
               "            self._early = None\n"),),
        red_by=("OperationalError", "ServerUnavailable"),
    ),
    Mutant(
        "jobs that are coming are not in hand", "G1",
        f"{BEHIND}::test_a_claim_that_is_sent_behind_others_knows_that_something_is_coming",
        (worker("claiming/claimer", "self.state.held_count + coming == 0", "self.state.held_count == 0"),),
    ),
    Mutant(
        "a worker begins its jobs in the order of their pages", "G13",
        "tests/worker/test_concurrency.py::test_the_urgent_go_first",
        (worker("claiming/claim_request", "            in_line(rows)\n", ""),),
    ),
    Mutant(
        "a worker that is never idle never looks from the floor", "G1",
        "tests/worker/test_lane_cursors.py"
        "::test_a_job_committed_late_is_found_soon_also_by_a_worker_that_is_never_idle",
        (worker("claiming/lane_cursors", "(self._is_fed or EVERY_LANE in self._far) and now < self._floor_due_at", "self._is_fed"),),
    ),
    Mutant(
        "a broken line holds on to a number that others get", "G10",
        "tests/store/test_async_connection.py::test_a_line_that_was_reset_leaves_its_number_at_once",
        (Patch("store/driver/exchange.py", "os.dup(pgconn.socket)", "pgconn.socket"),
         Patch("store/driver/exchange.py", "            self._end_with(fault)\n            self.close()\n",
               "            self._end_with(fault)\n")),
    ),
    Mutant(
        "a line whose call was refused hears no more wake-ups", "G10",
        "tests/store/test_async_connection.py::test_a_refused_call_leaves_the_line_listening",
        (Patch("store/driver/exchange.py", "self._pgconn.status == ConnStatus.OK\n\n    def close",
               "self.ended.exception() is None\n\n    def close"),),
    ),
    Mutant(
        "a worker that is to stop when all is done overlooks what it gave back", "G1",
        "tests/worker/test_stopping.py::test_a_job_given_back_while_the_claimer_asks_is_not_nothing",
        (worker("claiming/claimer", "if not had_none or self.state.held_count:", "if self.state.held_count:"),),
    ),
    Mutant(
        "a worker that is to stop when all is done takes what it stepped over for nothing", "G1",
        "tests/worker/test_lane_cursors.py"
        "::test_a_worker_that_is_to_stop_when_all_is_done_looks_from_the_floor_before_it_says_so",
        (worker("claiming/claimer", "elif not claim.stepped_over:", "else:"),),
    ),
    Mutant(
        "a commit whose reply was lost is told as a failure", "G7",
        f"{BROKEN}::test_a_commit_cut_after_it_was_carried_out_is_found_committed",
        (
            worker("transactions/transaction", "            await self._aresolve(broken)\n", "            raise\n"),
            worker("transactions/transaction", "            self._resolve(broken)\n", "            raise\n"),
        ),
    ),
    Mutant(
        "the settler takes a lost reply for a failure", "G7",
        f"{BROKEN}::test_a_batch_of_successes_cut_on_its_way_is_recorded_once",
        (worker(
            "settlement/settler", "self._take_singly(attempt, attempt.outcome, tries=0 if unsent else 1)",
            "self._take_singly(attempt, Failed('the reply was lost'), tries=0 if unsent else 1)",
        ),),
    ),
    Mutant(
        "the settler never asks the rows", "G7",
        f"{BROKEN}::test_a_batch_of_successes_cut_on_its_way_is_recorded_once",
        (
            worker("settlement/settler", "if unanswered and await self._is_told(attempt, outcome):", "if False:"),
            worker("settlement/settler", "if attempt.phase is COMMITTED or (lost.reason == \"settled\" and await self._committed(attempt)):", "if False:"),
        ),
    ),
    Mutant(
        "an unkeyed enqueue whose reply was lost is sent again", "G7",
        "tests/client/test_app.py::test_an_enqueue_whose_reply_was_lost_is_unknown",
        (
            Patch("client/unanswered.py", "        if matters and reply_was_lost(error):\n", "        if False:\n"),
        ),
    ),
    Mutant(
        "a worker does not ask again for a claim whose reply was lost", "G8",
        f"{BROKEN}::test_a_claim_cut_on_its_way_strands_no_job",
        (worker("claiming/claim_request", "rows = await self._backend.recover_claim(self.params)", "rows = None"),),
    ),
    Mutant(
        "job.complete commits without its job", "G3",
        f"{TRANSACTION}::test_rows_success_and_ledger_appear_together",
        (worker("transactions/transaction_base", "return calls.complete(self._attempt.lease, result)", "return calls.fence(self._attempt.lease)"),),
    ),
    Mutant(
        "job.complete has no fence at REPEATABLE READ", "G4",
        f"{TRANSACTION}::test_at_repeatable_read_the_fence_comes_first",
        (worker("transactions/transaction", "FENCE_FIRST = (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)", "FENCE_FIRST = ()"),),
    ),
    Mutant(
        "a loss that the handler swallowed is forgotten", "G4",
        f"{TRANSACTION}::test_a_handler_that_swallows_the_loss_altogether_does_not_succeed",
        (worker("transactions/transaction_base", "        if isinstance(error, LeaseLost):\n            self._attempt.lost = error", "        pass"),),
    ),
    Mutant(
        "a job may be settled by two blocks, one after the other", "G3",
        f"{TRANSACTION}::test_a_job_commits_once",
        (worker("transactions/transaction_base", "        if attempt.phase is AttemptPhase.COMMITTED:\n", "        if False:\n"),),
    ),
    Mutant(
        "a timeout cuts a commit short", "G7",
        f"{TRANSACTION}::test_cancelled_while_it_commits_a_job_gets_the_databases_answer",
        (worker("attempt", "is_committing = self.phase is AttemptPhase.COMMITTING", "is_committing = False"),),
    ),
    Mutant(
        "a dead child's commit is not looked for", "G7",
        "tests/worker/test_children_transaction.py::test_a_process_that_dies_before_it_can_tell_of_its_commit_has_succeeded",
        (worker("processes/child_pool", "if attempt.phase is AttemptPhase.COMMITTING:", "if False:"),),
    ),
    Mutant(
        "the pacemaker beats for a frozen worker", "G8",
        f"{PACEMAKER}::test_a_stopped_worker_loses_its_leases_though_its_pacemaker_runs",
        (
            worker("heartbeat/liveness", "if vital.state in GONE or vital.state == STOPPED:", "if False:"),
        ),
    ),
    Mutant(
        "the pacemaker outlives its worker", "G8",
        f"{PACEMAKER}::test_it_goes_when_its_worker_is_killed",
        (
            worker("heartbeat/liveness", "return os.getppid() == self.pid", "return True"),
            worker("heartbeat/pacemaker", "return not ready or bool(os.read(sys.stdin.fileno(), 4096))", "return True"),
            worker("heartbeat/pacemaker", 'if sys.platform == "linux":', 'if sys.platform == "none":'),
        ),
    ),
    Mutant(
        "a pacemaker in the middle of a beat outlives its worker", "G8",
        f"{PACEMAKER}::test_it_goes_even_while_its_server_does_not_answer",
        (worker("heartbeat/pacemaker", "    go_with_parent()\n    arm", "    arm"),),
    ),
    Mutant(
        "the worker does not hear that a lease is lost", "G4",
        f"{LOST}::test_a_taken_job_is_stopped_and_says_nothing_more",
        (worker("attempt", 'answer.word in ("lost", "cancel")', 'answer.word == "cancel"'),),
    ),
    Mutant(
        "the worker does not hear that a job was cancelled", "G12",
        f"{LOST}::test_a_cancelled_job_in_a_thread_finds_itself_lost",
        (worker("attempt", 'answer.word in ("lost", "cancel")', 'answer.word == "lost"'),),
    ),
    Mutant(
        "a handler goes on after its lease could not be renewed", "G8",
        f"{LOST}::test_a_handler_whose_lease_cannot_be_renewed_is_stopped_before_it_ends",
        (worker("attempt", "if now >= self.safe_at - self.lease_for * 0.1:", "if False:"),),
    ),
    Mutant(
        "a runner starts a job that was told to stop", "G2",
        f"{LOST}::test_a_worker_that_claims_what_it_still_works_on_never_runs_two_attempts_at_once",
        (
            worker("execution/executor", "and (first := state.buffer[0]).stopping is None\n", "and (first := state.buffer[0])\n"),
            worker("execution/executor", "            if attempt.stopping is None:\n                return attempt\n", "            return attempt\n"),
        ),
    ),
    Mutant(
        "the worker runs a second attempt beside the first", "G2",
        f"{LOST}::test_a_worker_that_claims_what_it_still_works_on_never_runs_two_attempts_at_once",
        (worker("claiming/job_intake", "if old := here.get(attempt.job_id):", "if old := here.get(-1):"),),
    ),
    Mutant(
        "an answer to an earlier lease counts for the next in its slot", "G4",
        f"{PACEMAKER}::test_an_answer_to_an_earlier_lease_in_the_same_slot_is_ignored",
        (worker("heartbeat/lease_table", "if spoken_of == generation else None", "if spoken_of else None"),),
    ),
    Mutant(
        "a lease is counted from when its claim was answered", "G5",
        "tests/test_lease.py::test_a_lease_is_counted_from_before_the_claim_was_sent",
        (Patch("lease.py", "return self.taken_at + self.lease_for", "return self.taken_at + self.lease_for + 1.0"),),
    ),
    Mutant(
        "an idempotency key holds the token", "G6",
        "tests/worker/test_handlers.py::test_an_idempotency_key_stays_and_a_token_grows_from_attempt_to_attempt",
        (Patch("job.py", "self._key_seed + self.id.to", "self._key_seed + self.token.to"),),
    ),
    Mutant(
        "an idempotency key is made of the id alone", "G6",
        f"{EFFECTS}::test_two_databases_of_one_template_have_other_keys_for_the_same_ids",
        (Patch("job.py", "UUID(bytes=self._key_seed + ", "UUID(bytes=bytes(8) + "),),
    ),
    Mutant(
        "a job that is put back for later gets another seed", "G6",
        f"{EFFECTS}::test_a_job_has_its_key_in_every_attempt_whichever_way_it_comes_back",
        (
            sql(
                "put_back", "judged.key, judged.said, judged.kept_columns",
                "judged.key, judged.said, " + columns("kept_columns", "judged", key_seed=ANOTHER_SEED),
            ),
        ),
    ),
    Mutant(
        "a job that is replayed gets another seed", "G6",
        f"{EFFECTS}::test_a_job_has_its_key_in_every_attempt_whichever_way_it_comes_back",
        (sql("raise_dead", "raised.kept_columns", columns("kept_columns", "raised", key_seed=f"{ANOTHER_SEED} as key_seed")),),
    ),
    Mutant(
        "a seed is drawn by random(), which a session can set", "G6",
        f"{EFFECTS}::test_a_producer_that_sets_the_seed_of_random_gets_no_key_again",
        (sql("new_key_seed", "int8send(uuid_hash_extended(gen_random_uuid(), 0))", "int8send((random() * 1e18)::bigint)"),),
    ),
    Mutant(
        "a child process is not told the seed", "G6",
        "tests/worker/test_children.py::test_a_handler_runs_in_the_main_thread_of_a_process_of_its_own_and_sees_its_job",
        (worker("processes/child_protocol", "place, trace, job._key_seed,", "place, trace, bytes(8),"),),
    ),
    Mutant(
        "behind a pooler a handler's SET reaches the next client", "G3",
        "tests/worker/test_pooler.py::test_what_a_handler_set_ends_with_its_transaction_where_sessions_are_shared",
        (worker("transactions/transaction", 'AS_NEW_INSIDE = b"set constraints all immediate; " + AS_NEW', 'AS_NEW_INSIDE = b"select 1"'),),
    ),
    Mutant(
        "an outage is a failed attempt", "G10",
        f"{BROKEN}::test_a_connection_that_breaks_inside_the_block_costs_no_attempt",
        (worker("execution/outcomes", "if isinstance(error, OUTAGE):", "if isinstance(error, ZeroDivisionError):"),),
    ),
    Mutant(
        "the text of a document may be of any length", "G13",
        "tests/sql/test_bounds.py::test_the_text_of_a_document_is_bounded_by_its_own_length",
        (Patch("sql/migrations/0019_document_depth.sql", "when octet_length(value) > 1048576 then false", "when octet_length(value) > 1048576 then true"),),
    ),
    Mutant(
        "any text is kept for a document", "G13",
        "tests/sql/test_bounds.py::test_one_document_past_its_bounds_has_all_of_its_bulk_refused",
        (Patch("sql/migrations/0019_document_depth.sql", "check (value is null or json_strip_nulls(value::json) is not null)", "check (true)"),),
    ),
    Mutant(
        "args are decoded for all that were claimed together", "G13",
        "tests/worker/test_bad_jobs.py::test_rule_10_args_that_do_not_fit_harm_only_their_own_job",
        (worker("claiming/job_intake", "            spec = find(task)\n", "            spec = find(task)\n            spec and spec.codec.decode(args)\n"),),
    ),
    Mutant(
        "a damaged row is claimed with its neighbours", "G13",
        "tests/sql/test_quarantine.py::test_a_claim_leaves_a_damaged_row_alone_and_its_neighbours_run",
        (Patch(
            "sql/functions/leases/claim.sql", "        and job.token < 2305843009213693952", "        and job.token is not null",
        ),),
    ),
    Mutant(
        "a document may be of any size", "G13",
        "tests/bad_input/test_i4_the_largest_document.py::test_i4_one_byte_more_is_refused_at_every_door",
        (Patch("sql/migrations/0019_document_depth.sql", "when octet_length(value) > 1048576 then false", "when octet_length(value) > 1048576 then true"),),
    ),
    Mutant(
        "a document is printed to be measured, whatever its exponents", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_no_document_costs_a_backend_its_memory_or_its_time",
        (Patch("sql/migrations/0019_document_depth.sql", "'[0-9][eE][+-]?0*(?:40[1-9]|4[1-9][0-9]|[5-9][0-9]{2}|[1-9][0-9]{3})' then true",
               "'no such thing' then true"),
         Patch("sql/migrations/0019_document_depth.sql", "> 10485 then false", "> 104850000 then false")),
    ),
    Mutant(
        "what SQL built is printed to be measured", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_what_sql_itself_has_built_is_not_printed_to_be_refused",
        (Patch("sql/functions/jobs/text_of.sql", "> 520) and exists", "> 520) and false and exists"),),
    ),
    Mutant(
        "each number of a document moves all that are left", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_numbers_cost_a_backend_what_their_number_costs",
        (Patch("sql/functions/jobs/text_of.sql", "from jsonb_array_elements(jsonb_path_query_array(document, 'strict $.** ? (@.type() == \"number\")')) as number",
               "from jsonb_path_query(document, 'strict $.** ? (@.type() == \"number\")') as number"),),
    ),
    Mutant(
        "rows of digits are searched for from each of their digits", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_a_document_costs_what_its_length_costs",
        (Patch("args/scan.py", "_LONG in form)", 're.search(rb"[0-9]{309}[0-9]*e", form) is not None)'),),
    ),
    Mutant(
        "what still runs after the grace is not given back", "G8",
        "tests/worker/test_stopping.py::test_p11_after_the_grace_the_running_go_back_with_their_attempt",
        (worker("worker", "                attempt.stop(StopReason.LEAVING)\n", "                pass\n"),),
    ),
    Mutant(
        "giving a job back costs its attempt", "G8",
        "tests/sql/test_give_back.py::test_a_released_job_is_free_at_once_with_its_attempt",
        (Patch("sql/functions/leases/give_back.sql", "  held.attempt := held.attempt - 1;\n", ""),),
    ),
)  # fmt: skip
