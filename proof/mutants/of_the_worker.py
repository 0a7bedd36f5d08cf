"""Mutants of the Python side: what the worker, its pacemaker and its settler add to what SQL decides."""

from proof.mutants.mutant import Mutant, Patch, sql, worker

TRANSACTION = "tests/worker/test_transaction.py"
BROKEN = "tests/worker/test_broken_commit.py"
LOST = "tests/worker/test_lost_leases.py"
PACEMAKER = "tests/worker/test_pacemaker.py"

EARLY = "tests/worker/test_early_claims.py"
BEHIND = "tests/worker/test_claims_behind.py"
EFFECTS = "tests/promises/test_12_an_idempotency_key_is_one_jobs.py"

MUTANTS = (
    Mutant(
        "a wake-up behind an early claim is taken for answered by it", "G1",
        f"{EARLY}::test_a_wake_up_that_comes_behind_an_early_claim_is_followed_by_another_claim",
        (worker("feeder", "if not self._ahead or self._ahead[0].wakes == self.shelf.wakes:", "if True:"),),
    ),
    Mutant(
        "a worker that leaves does not hear its early claim out", "G8",
        f"{EARLY}::test_a_feeder_that_is_closed_hears_its_early_claim_out",
        (worker("feeder", "while self._ahead or not self._closing.is_set():", "while not self._closing.is_set():"),),
    ),
    Mutant(
        "two speak over one line, the second into an early call", "G7",
        f"{BEHIND}::test_whoever_comes_behind_them_in_the_ordinary_way_waits_for_the_last",
        (Patch("store/line.py", "            await self._until_free()", "            pass"),),
        red_by=("OperationalError", "ServerUnavailable"),
    ),
    Mutant(
        "the reply to a call that was given up is heard by the next", "G3",
        f"{BEHIND}::test_nobody_hears_the_reply_to_another",
        (Patch("store/lean.py", "            self.next.fail()", "            self.next.begin()"),),
    ),
    Mutant(
        "a line that is closed goes on listening for what is under way", "G10",
        f"{BEHIND}::test_a_line_that_is_closed_leaves_its_number_though_calls_are_under_way",
        (Patch("store/lean.py", "self._fail_all()  # or", "pass  # or"),),
    ),
    Mutant(
        "claims under way are forgotten when there is asked for more", "G9",
        f"{BEHIND}::test_claims_under_way_count_for_the_room_that_is_left",
        (worker("feeder", "coming = sum(rooms)", "coming = 0"),),
    ),
    Mutant(
        "a claim that was taken is asked again when its line broke", "G5",
        f"{BEHIND}::test_a_claim_that_was_taken_is_not_asked_again_though_its_line_broke",
        (worker("asking", "        if self.rows:\n            return self.rows", "        if False:\n            return self.rows"),),
        red_by=("AttributeError",),
    ),
    Mutant(
        "a worker that was idle for long takes itself for fast", "G13",
        f"{BEHIND}::test_nor_is_a_worker_taken_for_fast_because_it_was_idle_for_long",
        (worker("shelf", "max(at, self._idle_since)", "self._idle_since"),),
    ),
    Mutant(
        "a claim that lay ready for long does not look back", "G1",
        "tests/worker/test_memory.py::test_a_claim_that_lay_ready_for_too_long_is_not_sent",
        (worker("memory", "return now >= self.look_at", "return False"),),
    ),
    Mutant(
        "what a claim stepped over that began too far behind others is taken for passed", "G1",
        "tests/worker/test_memory.py"
        "::test_behind_one_that_began_further_than_those_before_it_came_the_next_begins_where_they_ended",
        (worker("memory", "del passed[lane]  # the next", "pass  # the next"),),
    ),
    Mutant(
        "nobody is told where a claim behind others began", "G1",
        f"{BEHIND}::test_what_a_claim_behind_others_stepped_over_is_claimed_next",
        (worker("asking", "is_full=len(rows) == self.room, begins=self.begins", "is_full=len(rows) == self.room"),),
    ),
    Mutant(
        "a queue that is at its limit is looked at without a pause", "G13",
        "tests/worker/test_memory.py::test_a_queue_at_its_limit_need_not_be_looked_at",
        (worker("feeder", "if memory.stepped_over and self._has_room(queue)", "if memory.stepped_over"),),
    ),
    Mutant(
        "a claim that is found lost when it comes late is taken for one that found nothing", "G1",
        "tests/worker/test_memory.py::test_a_late_claim_whose_leases_are_lost_has_not_found_nothing",
        (worker("feeder", "        if rows:\n            self._empty.clear()\n        elif",
                "        if rows and not claim.is_late:\n            self._empty.clear()\n        elif"),),
    ),
    Mutant(
        "behind a claim that came back short nobody looks at what was passed just now", "G1",
        "tests/worker/test_memory.py"
        "::test_behind_a_claim_that_came_back_short_the_next_looks_at_what_was_passed_just_now",
        (worker("memory", "self._is_full = is_full", "self._is_full = True"),),
    ),
    Mutant(
        "the end of an early call is taken for the end of the one behind it", "G7",
        f"{BEHIND}::test_whoever_comes_behind_them_in_the_ordinary_way_waits_for_the_last",
        (Patch("store/line.py", "            if self._early is early:\n                self._early = None\n",
               "            self._early = None\n"),),
        red_by=("OperationalError", "ServerUnavailable"),
    ),
    Mutant(
        "jobs that are coming are not in hand", "G1",
        f"{BEHIND}::test_a_claim_that_is_sent_behind_others_knows_that_something_is_coming",
        (worker("asking", "self._shelf.in_hand + coming == 0", "self._shelf.in_hand == 0"),),
    ),
    Mutant(
        "a worker begins its jobs in the order of their pages", "G13",
        "tests/worker/test_concurrency.py::test_the_urgent_go_first",
        (worker("asking", "self.rows = in_line(rows)", "self.rows = rows"),),
    ),
    Mutant(
        "a worker that is never idle never looks from the floor", "G1",
        "tests/worker/test_memory.py"
        "::test_whoever_commits_late_is_found_soon_also_by_a_worker_that_is_never_idle",
        (worker("memory", "self._is_fed and now < self._floor_at + FLOOR_SECONDS", "self._is_fed"),),
    ),
    Mutant(
        "a broken line holds on to a number that others get", "G10",
        "tests/store/test_lean.py::test_a_line_that_was_reset_leaves_its_number_at_once",
        (Patch("store/lean.py", "            self._end_with(fault)\n            self.close()\n",
               "            self._end_with(fault)\n"),),
    ),
    Mutant(
        "a line whose call was refused hears no more wake-ups", "G10",
        "tests/store/test_lean.py::test_a_refused_call_leaves_the_line_listening",
        (Patch("store/lean.py", "self._pgconn.status == ConnStatus.OK\n\n    def close",
               "self.ended.exception() is None\n\n    def close"),),
    ),
    Mutant(
        "a worker that is to stop when all is done overlooks what it gave back", "G1",
        "tests/worker/test_stopping.py::test_a_job_given_back_while_the_feeder_asks_is_not_nothing",
        (worker("feeder", "if not had_none or self.shelf.in_hand:", "if self.shelf.in_hand:"),),
    ),
    Mutant(
        "a worker that is to stop when all is done takes what it stepped over for nothing", "G1",
        "tests/worker/test_memory.py"
        "::test_a_worker_that_is_to_stop_when_all_is_done_looks_from_the_floor_before_it_says_so",
        (worker("feeder", "elif not claim.stepped_over:", "else:"),),
    ),
    Mutant(
        "a commit whose reply was lost is told as a failure", "G7",
        f"{BROKEN}::test_a_commit_cut_after_it_was_carried_out_is_found_committed",
        (
            worker("transaction", "            await self._aresolve(broken)\n", "            raise\n"),
            worker("transaction", "            self._resolve(broken)\n", "            raise\n"),
        ),
    ),
    Mutant(
        "the settler takes a lost reply for a failure", "G7",
        f"{BROKEN}::test_a_batch_of_successes_cut_on_its_way_is_recorded_once",
        (worker(
            "settler", "self._take_singly(hand, hand.outcome, tries=0 if unsent else 1)",
            "self._take_singly(hand, Failed('the reply was lost'), tries=0 if unsent else 1)",
        ),),
    ),
    Mutant(
        "the settler never asks the rows", "G7",
        f"{BROKEN}::test_a_batch_of_successes_cut_on_its_way_is_recorded_once",
        (
            worker("settler", "if unanswered and await self._is_told(hand, outcome):", "if False:"),
            worker("settler", 'if hand.settled or (lost.reason == "settled" and await self._committed(hand)):', "if False:"),
        ),
    ),
    Mutant(
        "an unkeyed enqueue whose reply was lost is sent again", "G7",
        "tests/client/test_app.py::test_an_enqueue_whose_reply_was_lost_is_unknown",
        (
            Patch("client/sender.py", "        if matters and _reply_was_lost(error):\n", "        if False:\n"),
        ),
    ),
    Mutant(
        "a worker does not ask again for a claim whose reply was lost", "G8",
        f"{BROKEN}::test_a_claim_cut_on_its_way_strands_nobody",
        (worker("asking", "if kept := await self._line.fetch(_again(call)):", "if kept := list[Row]():"),),
    ),
    Mutant(
        "job.transaction commits without its job", "G3",
        f"{TRANSACTION}::test_rows_success_and_ledger_appear_together",
        (
            worker(
                "transaction",
                "            await AsyncStore.run_in(self._conn, calls.complete(self._hand.lease, self._result))\n", "",
            ),
            worker(
                "transaction",
                "            Store.run_in(self._conn, calls.complete(self._hand.lease, self._result))\n", "",
            ),
        ),
    ),
    Mutant(
        "job.transaction has no fence at REPEATABLE READ", "G4",
        f"{TRANSACTION}::test_at_repeatable_read_the_fence_comes_first",
        (worker("transaction", "FENCE_FIRST = (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)", "FENCE_FIRST = ()"),),
    ),
    Mutant(
        "a loss that the handler swallowed is forgotten", "G4",
        f"{TRANSACTION}::test_a_handler_that_swallows_the_loss_altogether_does_not_succeed",
        (worker("block", "        if isinstance(error, LeaseLost):\n            self._hand.lost = error", "        pass"),),
    ),
    Mutant(
        "a job may be settled by two blocks, one after the other", "G3",
        f"{TRANSACTION}::test_a_job_commits_once",
        (worker("block", "        if hand.settled:\n", "        if False:\n"),),
    ),
    Mutant(
        "a timeout cuts a commit short", "G7",
        f"{TRANSACTION}::test_cancelled_while_it_commits_a_job_gets_the_databases_answer",
        (worker("hand", "if self.runner is not None and not self.told and not self.committing:", "if self.runner is not None and not self.told:"),),
    ),
    Mutant(
        "a dead child's commit is not looked for", "G7",
        "tests/worker/test_children_transaction.py::test_a_process_that_dies_before_it_can_tell_of_its_commit_has_succeeded",
        (worker("children", "if hand.committing and not hand.settled:", "if False:"),),
    ),
    Mutant(
        "the pacemaker beats for a frozen worker", "G8",
        f"{PACEMAKER}::test_a_stopped_worker_loses_its_leases_though_its_pacemaker_runs",
        (
            worker("pulse", "if vital.state in GONE or vital.state == STOPPED:", "if False:"),
        ),
    ),
    Mutant(
        "the pacemaker outlives its worker", "G8",
        f"{PACEMAKER}::test_it_goes_when_its_worker_is_killed",
        (
            worker("pulse", "return os.getppid() == self.pid", "return True"),
            worker("pacemaker", "return not ready or bool(os.read(sys.stdin.fileno(), 4096))", "return True"),
            worker("pacemaker", 'if sys.platform == "linux":', 'if sys.platform == "none":'),
        ),
    ),
    Mutant(
        "the worker does not hear that a lease is lost", "G4",
        f"{LOST}::test_a_taken_job_is_stopped_and_says_nothing_more",
        (worker("overseer", 'answer.word in ("lost", "cancel")', 'answer.word == "cancel"'),),
    ),
    Mutant(
        "the worker does not hear that a job was cancelled", "G12",
        f"{LOST}::test_a_cancelled_job_in_a_thread_finds_itself_lost",
        (worker("overseer", 'answer.word in ("lost", "cancel")', 'answer.word == "lost"'),),
    ),
    Mutant(
        "a handler goes on after its lease could not be renewed", "G8",
        f"{LOST}::test_a_handler_whose_lease_cannot_be_renewed_is_stopped_before_it_ends",
        (worker("overseer", "if now >= hand.safe_at - hand.lease_for * 0.1:", "if False:"),),
    ),
    Mutant(
        "a runner starts a job that was told to stop", "G2",
        f"{LOST}::test_a_worker_that_claims_what_it_still_works_on_never_runs_two_attempts_at_once",
        (
            worker("runner", "if shelf.buffer and shelf.buffer[0].stopping is None:", "if shelf.buffer:"),
            worker("runner", "            if hand.stopping is None:\n                return hand\n", "            return hand\n"),
        ),
    ),
    Mutant(
        "the worker runs a second attempt beside the first", "G2",
        f"{LOST}::test_a_worker_that_claims_what_it_still_works_on_never_runs_two_attempts_at_once",
        (worker("feeder", "if old := here.get(hand.job_id):", "if old := here.get(-1):"),),
    ),
    Mutant(
        "an answer to an earlier lease counts for the next in its slot", "G4",
        f"{PACEMAKER}::test_an_answer_to_an_earlier_lease_in_the_same_slot_is_ignored",
        (worker("board", "if spoken_of == generation else None", "if spoken_of else None"),),
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
        (sql("put_back", "judged.alone_times, judged.trace, judged.key_seed", "judged.alone_times, judged.trace, faultline.new_key_seed()"),),
    ),
    Mutant(
        "a job that is replayed gets another seed", "G6",
        f"{EFFECTS}::test_a_job_has_its_key_in_every_attempt_whichever_way_it_comes_back",
        (sql("raise_dead", "raised.key_seed", "faultline.new_key_seed()"),),
    ),
    Mutant(
        "a seed is drawn by random(), which a session can set", "G6",
        f"{EFFECTS}::test_a_producer_that_sets_the_seed_of_random_gets_no_key_again",
        (sql("new_key_seed", "int8send(uuid_hash_extended(gen_random_uuid(), 0))", "int8send((random() * 1e18)::bigint)"),),
    ),
    Mutant(
        "a child process is not told the seed", "G6",
        "tests/worker/test_children.py::test_a_handler_runs_in_the_main_thread_of_a_process_of_its_own_and_sees_its_job",
        (worker("wire", "place, trace, job._key_seed,", "place, trace, bytes(8),"),),
    ),
    Mutant(
        "behind a pooler a handler's SET reaches the next client", "G3",
        "tests/worker/test_pooler.py::test_what_a_handler_set_ends_with_its_transaction_where_sessions_are_shared",
        (worker("transaction", 'AS_NEW_INSIDE = f"set constraints all immediate; {AS_NEW}"', 'AS_NEW_INSIDE = "select 1"'),),
    ),
    Mutant(
        "an outage is a failed attempt", "G10",
        f"{BROKEN}::test_a_connection_that_breaks_inside_the_block_costs_no_attempt",
        (worker("judge", "if isinstance(error, OUTAGE):", "if isinstance(error, ZeroDivisionError):"),),
    ),
    Mutant(
        "the text of a document may be of any length", "G13",
        "tests/sql/test_bounds.py::test_the_text_of_a_document_is_bounded_by_its_own_length",
        (Patch("sql/migrations/0012_documents.sql", "when octet_length(value) > 1048576 then false", "when octet_length(value) > 1048576 then true"),),
    ),
    Mutant(
        "any text is kept for a document", "G13",
        "tests/sql/test_bounds.py::test_one_document_past_its_bounds_has_all_of_its_bulk_refused",
        (Patch("sql/migrations/0012_documents.sql", "check (value is null or value::jsonb is not null)", "check (true)"),),
    ),
    Mutant(
        "args are decoded for all that were claimed together", "G13",
        "tests/worker/test_bad_jobs.py::test_rule_10_args_that_do_not_fit_harm_only_their_own_job",
        (worker("feeder", "            spec = find(task)\n", "            spec = find(task)\n            spec and spec.codec.decode(args)\n"),),
    ),
    Mutant(
        "a damaged row is claimed with its neighbours", "G13",
        "tests/sql/test_quarantine.py::test_a_claim_leaves_a_damaged_row_alone_and_its_neighbours_run",
        (Patch(
            "sql/functions/claim.sql", "        and job.token < 2305843009213693952", "        and job.token is not null",
        ),),
    ),
    Mutant(
        "a document may be of any size", "G13",
        "tests/bad_input/test_i4_the_largest_document.py::test_i4_one_byte_more_is_refused_at_every_door",
        (Patch("sql/migrations/0012_documents.sql", "when octet_length(value) > 1048576 then false", "when octet_length(value) > 1048576 then true"),),
    ),
    Mutant(
        "a document is printed to be measured, whatever its exponents", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_no_document_costs_a_backend_its_memory_or_its_time",
        (Patch("sql/migrations/0012_documents.sql", "'[0-9][eE][+-]?0*(?:40[1-9]|4[1-9][0-9]|[5-9][0-9]{2}|[1-9][0-9]{3})' then true",
               "'no such thing' then true"),
         Patch("sql/migrations/0012_documents.sql", "> 10485 then false", "> 104850000 then false")),
    ),
    Mutant(
        "what SQL built is printed to be measured", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_what_sql_itself_has_built_is_not_printed_to_be_refused",
        (Patch("sql/functions/text_of.sql", "> 520 and exists", "> 520 and false and exists"),),
    ),
    Mutant(
        "each number of a document moves all that are left", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_numbers_cost_a_backend_what_their_number_costs",
        (Patch("sql/functions/text_of.sql", "from jsonb_array_elements(jsonb_path_query_array(document, 'strict $.** ? (@.type() == \"number\")')) as number",
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
        (worker("worker", '                hand.stop("leaving")\n', "                pass\n"),),
    ),
    Mutant(
        "giving a job back costs its attempt", "G8",
        "tests/sql/test_give_back.py::test_a_released_job_is_free_at_once_with_its_attempt",
        (Patch("sql/functions/give_back.sql", "  held.attempt := held.attempt - 1;\n", ""),),
    ),
)  # fmt: skip
