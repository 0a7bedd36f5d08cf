"""Mutants of jobs that are settled in the user's own transaction, and of requests that enqueue in theirs."""

from proof.mutants.mutant import Mutant, Patch, sql, worker

CARRIERS = "tests/integrations/test_carriers.py"
COMPLETING = "tests/worker/test_completing.py"
SETTLE_IN = "tests/sql/test_settle_in.py"
LOST_REPLIES = "tests/integrations/test_lost_replies.py"
PROVIDED = "tests/worker/test_provided_transactions.py"
WEB = "tests/integrations/test_fastapi.py"

REFUSED = """\
    except LeaseLost as lost:
        raise _refused(attempt, lost, form) from lost
    _offered(attempt, offer)
"""
SWALLOWED = """\
    except LeaseLost:
        pass
    _offered(attempt, offer)
"""
PLAIN = "    try:\n        carrier.run(call)\n"
AWAITED = "    try:\n        await carrier.run(call)\n"


def edge(module: str, old: str, new: str) -> Patch:
    """A patch to a part of an integration."""
    return Patch(f"integrations/{module}.py", old, new)


MUTANTS = (
    Mutant(
        "a job may be completed inside a savepoint", "G3",
        f"{SETTLE_IN}::test_in_a_savepoint_it_is_refused_and_the_job_stays",
        (sql("fence_in", "if not outside and not coalesce(fence_in.savepoint, false) then", "if false then"),),
    ),
    Mutant(
        "a savepoint is looked for on a row that is only locked", "G3",
        f"{SETTLE_IN}::test_a_fence_outside_does_not_hide_a_savepoint",
        (
            sql(
                "fence_in", "  update faultline.active as job\n  set claimed_at = job.claimed_at\n",
                "  select job.xmax = pg_current_xact_id()::xid into outside\n  from faultline.active as job\n",
            ),
            sql(
                "fence_in", "\n  returning job.xmin = pg_current_xact_id()::xid into outside;", "\n  for no key update;",
            ),
        ),
    ),
    Mutant(
        "complete_in does not ask for the token", "G4",
        f"{SETTLE_IN}::test_another_lease_is_refused",
        (
            sql("fence_in", "\n    and job.token = fence_in.token", ""),
            sql("complete", "\n    and job.token = complete.token", ""),
        ),
    ),
    Mutant(
        "the rows are not asked after complete_in", "G3",
        f"{CARRIERS}::test_what_rolls_back_is_not_completed_and_fails",
        (worker("settlement/settler", "if attempt.offer is not None and isinstance(outcome, Outcome):", "if False:"),),
    ),
    Mutant(
        "a refusal of complete_in is no error", "G4",
        f"{CARRIERS}::test_a_lost_lease_rolls_back_and_is_refused",
        (
            worker("settlement/settle_in", PLAIN + REFUSED, PLAIN + SWALLOWED),
            worker("settlement/settle_in", AWAITED + REFUSED, AWAITED + SWALLOWED),
        ),
    ),
    Mutant(
        "a job is completed apart from the user's rows, in autocommit", "G3",
        f"{CARRIERS}::test_without_a_transaction_nothing_is_written",
        (
            worker("settlement/settle_in", "    if not carrier.in_transaction():", "    if False:"),
            worker("settlement/settle_in", "    if not await carrier.in_transaction():", "    if False:"),
        ),
    ),
    Mutant(
        "an error is noted beside another lease's success", "G12",
        f"{SETTLE_IN}::test_an_error_is_kept_once_beside_the_success_of_its_own_lease",
        (sql("note_error", "\n    and entry.token   = note_error.token", ""),),
    ),
    Mutant(
        "a later note replaces the first", "G12",
        f"{SETTLE_IN}::test_an_error_is_kept_once_beside_the_success_of_its_own_lease",
        (sql("note_error", "\n    and entry.error is null", ""),),
    ),
    Mutant(
        "a lease without any trace is told as a success, though its job is there", "G7",
        f"{SETTLE_IN}::test_a_lease_of_another_claim_has_no_answer",
        (sql("outcome_in", "if answer = 'gone' and not exists (", "if answer = 'gone' and (true or not exists ("),
         sql("outcome_in", "entry.job_id = outcome_in.job_id\n  ) then", "entry.job_id = outcome_in.job_id\n  )) then")),
    ),
    Mutant(
        "a transaction that is still open is told as rolled back", "G7",
        f"{SETTLE_IN}::test_the_rows_tell_what_became_of_it",
        (sql("outcome_in", "    return 'busy';", "    return 'running';"),),
    ),
    Mutant(
        "job.fenced commits without a fence", "G4",
        f"{COMPLETING}::test_fenced_rows_of_a_lost_lease_roll_back",
        (worker("transactions/transaction", "return calls.fence(self._attempt.lease)", "return calls.wake('default')"),),
    ),
    Mutant(
        "job.fenced completes the job", "G3",
        f"{COMPLETING}::test_fenced_rows_are_committed_and_the_job_goes_on",
        (worker("transactions/transaction", "return calls.fence(self._attempt.lease)", "return calls.complete(self._attempt.lease, self._result)"),),
    ),
    Mutant(
        "a request's transaction commits after its answer", "G1",
        f"{WEB}::test_rows_and_jobs_of_a_request_commit_together_before_its_answer",
        (edge("fastapi", 'BEFORE_THE_ANSWER: Final = "function"', 'BEFORE_THE_ANSWER: Final = "request"'),),
    ),
    Mutant(
        "a mounted API asks once who a caller is", "G15",
        f"{WEB}::test_a_caller_who_may_no_more_loses_a_wait_that_lasts",
        (edge("fastapi_api", "        if monotonic() >= self._until:\n", "        if False:\n"),),
    ),
    Mutant(
        "a scope is found in a part of another word", "G15",
        "tests/auth/test_caller.py::test_scopes_and_queues_are_sets_of_names",
        (Patch("server/auth/caller.py", "if not isinstance(self.scopes, Set) or not self.scopes <= set(SCOPES):", "if False:"),),
    ),
    Mutant(
        "a stream goes on with the queues that its caller had", "G15",
        f"{WEB}::test_a_caller_who_loses_a_queue_loses_its_events",
        (
            Patch(
                "server/http/routes/event_stream.py",
                "return None if now.queues == before.queues else", "return None if True else",
            ),
        ),
    ),
    Mutant(
        "a long poll answers by the queues that its caller had", "G15",
        f"{WEB}::test_a_caller_who_loses_a_queue_is_not_told_of_its_job",
        (Patch("server/http/routes/jobs.py", "        caller = await request.state.who()  # a user", "        # a user"),),
    ),
    Mutant(
        "a mounted API gives every caller all queues", "G15",
        f"{WEB}::test_the_apps_own_users_ask_and_act_within_their_scopes_and_queues",
        (edge("fastapi_api", "return await admission.caller()", 'return Caller("anyone", (await admission.caller()).scopes, None)'),),
    ),
    Mutant(
        "the error of a lost reply is believed before the rows", "G3",
        f"{LOST_REPLIES}::test_a_commit_whose_reply_is_lost_is_a_success",
        (worker(
            "settlement/settler", "if attempt.offer is not None and not isinstance(outcome, LeaseLost):",
            "if attempt.offer is not None and isinstance(outcome, Done):",
        ),),
    ),
    Mutant(
        "a COMMIT sent as SQL over SQLAlchemy is not noticed", "G7",
        f"{PROVIDED}::test_a_commit_sent_as_sql_is_told_by_name",
        (edge("sqlalchemy_watch", "    if is_idle(conn.connection.driver_connection):\n", "    if False:\n"),),
    ),
    Mutant(
        "a COMMIT sent as SQL over Django is not noticed", "G7",
        f"{PROVIDED}::test_a_commit_sent_as_sql_is_told_by_name",
        (edge("django/carrier", "        self.ended |= self._conn.in_atomic_block and", "        self.ended |= False and"),),
    ),
    Mutant(
        "complete_in after a COMMIT sent over asyncpg is a transaction of its own", "G3",
        f"{CARRIERS}::test_after_a_commit_sent_as_sql_there_is_no_transaction_to_complete_in",
        (edge("sqlalchemy", "lost = begun and is_idle(conn.connection.driver_connection)", "lost = False"),),
    ),
)  # fmt: skip
