"""Mutants of fair shares: each lets one key take what the others need."""

from proof.mutants.mutant import Mutant, Patch, sql

FAIR = "tests/server/test_fair_shares.py"
WHO = "tests/http/test_s2_who_may_do_what.py"
CARGO = "tests/grpc/test_payload_budget.py"
PACING = "tests/server/test_document_pacing.py"

MUTANTS = (
    Mutant(
        "a key has no rate over gRPC", "G13",
        f"{FAIR}::test_a_key_has_a_rate_on_grpc_as_on_http",
        (Patch("server/grpc/guard/call_guard.py", "while not self.rate_limiter.has_turn(caller.actor, kind):", "while False:"),
         Patch("server/throttling/rate_limit.py", "if not self.has_turn(name, kind):", "if False:")),
    ),
    Mutant(
        "a job's fields are decoded however long they are", "G13",
        "tests/http/test_long_lists.py::test_a_job_with_members_that_repeat_is_refused_undecoded",
        (Patch("server/http/submit/submission.py", "if beside > ENVELOPE_BYTES_MAX:", "if False:"),),
    ),
    Mutant(
        "a mistyped name is compared with all there are", "G13",
        "tests/http/test_long_lists.py::test_a_mistyped_queue_is_compared_with_some_of_very_many",
        (Patch("text/suggest.py", "if len(by_lower) > COMPARED_MAX else by_lower", "if False else by_lower"),),
    ),
    Mutant(
        "all queues come in one answer", "G13",
        "tests/http/test_long_lists.py::test_queues_come_a_page_at_a_time",
        (Patch("server/http/routes/queues.py", '(after or "")), most))', '(after or "")), None))'),),
    ),
    Mutant(
        "the whole history of a job is read", "G13",
        "tests/sql/test_views.py::test_the_leases_of_a_job_are_read_a_page_at_a_time",
        (sql("history", "    limit least(greatest(history.most, 1), 10000)\n", ""),),
    ),
    Mutant(
        "a caller whose keys are held takes every place for keyed jobs", "G13",
        "tests/http/test_batcher.py::test_keys_that_are_held_leave_room_for_the_keyed_jobs_of_other_callers",
        (Patch("server/http/submit/batcher.py", "KEYED_AT_ONCE_PER_CALLER: Final = 2", "KEYED_AT_ONCE_PER_CALLER: Final = 4"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "a retry policy is not counted", "G13",
        "tests/sql/test_claim.py::test_a_retry_policy_counts_at_its_length_and_has_a_bound",
        (sql("claim", " + coalesce(octet_length(job.retry::text), 0) as weight", " as weight"),),
    ),
    Mutant(
        "a job has a second path", "G13",
        "tests/http/test_jobs.py::test_a_job_has_one_path",
        (Patch("server/http/dependencies.py", "if isinstance(text, str) and not _DIGITS.fullmatch(text):", "if False:"),),
    ),
    Mutant(
        "long polls and heartbeats have one budget", "G13",
        f"{FAIR}::test_a_thousand_long_polls_of_one_key_stop_no_heartbeat_of_another",
        (
            Patch("server/grpc/workers_service.py", '@unary("work", POLL,', '@unary("work", VITAL,'),
            Patch("server/limits.py", "vital_at_once_max: int = 2_000", "vital_at_once_max: int = 1_000"),
            Patch("server/limits.py", "vital_at_once_per_key: int = 500", "vital_at_once_per_key: int = 5_000"),
        ),
        red_by=("AioRpcError",),
    ),
    Mutant(
        "one key takes all event streams", "G13", f"{FAIR}::test_one_read_key_cannot_take_all_event_streams",
        (Patch("server/limits.py", "subscribers_per_key: int = 20", "subscribers_per_key: int = 2_000"),),
    ),
    Mutant(
        "each client of the figures has them counted for itself", "G13",
        f"{FAIR}::test_150_clients_of_stats_cost_two_questions_and_hold_up_no_other",
        (Patch("server/http/shared_answers.py", "        if self._next is None:\n", "        if True:\n"),),
    ),
    Mutant(
        "connections are lent in the order of arrival", "G13",
        f"{FAIR}::test_slow_reads_of_one_key_leave_connections_to_the_others",
        (Patch("server/process.py", ", turns=ConnectionTurns(POOL_MAX)", ""),),
    ),
    Mutant(
        "two keys hold all the room for jobs on their way", "G13",
        f"{CARGO}::test_a_key_takes_no_more_of_the_room_than_it_leaves_free",
        (Patch("server/throttling/payload_budget.py", "and (not held or held + CLAIM_BYTES_MAX <= free)", "and True"),),
    ),
    Mutant(
        "answers that are not read keep their room until the call's deadline", "G13",
        f"{CARGO}::test_many_keys_that_do_not_read_are_hung_up_on_and_their_jobs_come_back",
        (Patch("server/throttling/payload_budget.py", "                    load.hurry()\n", "                    pass\n"),),
    ),
    Mutant(
        "a connection whose answer is not read stays open", "G13",
        f"{CARGO}::test_many_keys_that_do_not_read_are_hung_up_on_and_their_jobs_come_back",
        (Patch("server/grpc/workers_service.py", "            self.guard.connections.hang_up(context.peer())\n", ""),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "documents of some kilobytes are checked as they come", "G13",
        f"{PACING}::test_every_door_paces_its_large_documents",
        (Patch("server/throttling/document_pacing.py", "LARGE_BYTES: Final = 4_096", "LARGE_BYTES: Final = 65_536"),),
    ),
    Mutant(
        "jobs over gRPC are paced by their args alone", "G13",
        f"{PACING}::test_jobs_without_args_are_paced_by_the_size_of_their_message",
        (Patch("server/grpc/jobs_service.py", "all_of(asked, request.ByteSize())", "all_of(asked, sum(len(one.args) for one in request.jobs))"),),
    ),
    Mutant(
        "a document is read as a tree to be checked", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_many_small_values_are_no_tree_in_a_backend",
        (
            Patch("sql/migrations/0019_document_depth.sql", "json_strip_nulls(value::json) is not null", "value::jsonb is not null"),
            Patch("store/calls/jobs.py", "if new.args and len(new.args) > TEXT_BYTES_MIN:", "if False:"),
        ),
    ),
    Mutant(
        "a document has any number of objects", "G13",
        "tests/bad_input/test_i12_documents_that_cost.py::test_i12_a_document_costs_what_its_length_costs",
        (Patch("args/document.py", "if scan.has_too_many_objects():", "if False:"),),
    ),
    Mutant(
        "waiting Asks name any number of queues", "G13",
        "tests/grpc/test_wait_queue.py::test_an_ask_past_its_keys_share_of_queues_is_refused_over_the_wire",
        (Patch("server/grpc/sessions/assigner.py", "present(waiter, request.whose)", "present(waiter)"),
         Patch("server/grpc/sessions/wait_queue.py", "queues > self._queues_per_key", "queues > self._queues_max")),
    ),
    Mutant(
        "an HTTP answer gives its room back before it is read", "G13",
        "tests/http/test_s6_slow_and_greedy_clients.py::test_answers_that_are_not_read_take_a_share_of_their_key_alone",
        (Patch("server/http/guard/request_guard.py", "                    await taken()\n", "                    pass\n"),),
    ),
    Mutant(
        "a key has any number of workers", "G13",
        "tests/sql/test_workers.py::test_a_key_has_at_most_2000_workers_that_run",
        (sql("worker_started", "if alive >= 2000 then", "if false then"),),
    ),
    Mutant(
        "a key's silent workers pile up", "G13",
        "tests/sql/test_workers.py::test_a_key_that_starts_workers_over_and_over_keeps_4000_rows",
        (sql("worker_started", "elsif known >= 4000 then", "elsif false then"),),
    ),
    Mutant(
        "a payload is read and written again on its way", "G13",
        "tests/grpc/test_jobs.py::test_a_payload_is_passed_on_as_it_is_kept",
        (
            Patch("server/grpc/jobs_service.py", "calls.get_unread(request.id),", "calls.get(request.id),"),
            Patch("server/grpc/jobs_service.py", "info.args or NULL", "__import__('json').dumps(info.args).encode()"),
        ),
    ),
    Mutant(
        "numbers far from one are read by the slow way of the fast parser", "G13",
        f"{PACING}::test_a_number_far_from_one_costs_little_more_than_another",
        (Patch("args/document.py", "_far if scan.has_far_numbers() else _near", "_near"),),
    ),
    Mutant(
        "a list of queues reads all that waits for later once for each", "G13",
        "tests/sql/test_views.py::test_a_list_of_queues_reads_a_few_pages_for_each_of_them",
        (
            Patch("sql/views/queue_lag.sql", "left join (\n  select lane.queue, min(job.run_at) as run_at\n",
                  "left join lateral (\n  select min(job.run_at) as run_at\n"),
            Patch("sql/views/queue_lag.sql", "where job.run_at <= (select faultline.now()) and job.place is null   -- a job at the gate of its limit "
                  "waits on purpose\n  group by lane.queue\n",
                  "where lane.queue = owner.name and job.run_at <= faultline.now() and job.place is null\n"),
            Patch("sql/views/queue_lag.sql", "as first_late on first_late.queue = owner.name;", "as first_late on true;"),
        ),
    ),
)  # fmt: skip
