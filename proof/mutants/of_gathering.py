"""Mutants of enqueues that share a call: whose answer is whose, what fails alone, what is sent again."""

from proof.mutants.mutant import Mutant, Patch, sql

TOGETHER = "tests/client/test_gathering.py"
TROUBLE = "tests/client/test_gathering_trouble.py"

MUTANTS = (
    Mutant(
        "a job that is refused fails those of its batch", "G7",
        f"{TOGETHER}::test_a_job_that_postgresql_refuses_fails_alone",
        (Patch(
            "client/gathering/batches.py", "return [Alone.FIRST] * len(jobs)  # for",
            "return [error] * len(jobs)  # type: ignore[list-item]  # for",
        ),),
    ),
    Mutant(
        "an answer follows the transaction of another job", "G7",
        f"{TOGETHER}::test_a_key_that_names_another_request_fails_alone",
        (Patch(
            "client/gathering/batches.py", "return [Alone.FIRST if row.id is None else MadeJob(row.id, row.is_new) for row in rows]",
            "return [MadeJob(rows[0].id or 0, True) if row.id is None else MadeJob(row.id, row.is_new) for row in rows]",
        ),),
    ),
    Mutant(
        "a key that conflicts sends its neighbours one by one", "G11",
        f"{TOGETHER}::test_a_key_that_names_another_request_fails_alone",
        (sql("enqueue_each", "faultline.take_key_unless_other(", "faultline.take_key("),),
    ),
    Mutant(
        "a job without a kind is left out of the answer", "G7",
        "tests/sql/test_enqueue_each.py::test_a_job_without_a_kind_is_not_left_out",
        (sql("enqueue_each", "if answered is distinct from cardinality(args) then", "if false then"),),
    ),
    Mutant(
        "a batch whose reply was lost is sent again", "G7",
        f"{TROUBLE}::test_a_lost_reply_is_unknown_to_each_caller_and_no_job_is_sent_twice",
        (Patch(
            "client/gathering/batches.py", "[_unknown(error) if new.key is None else Alone.AGAIN for new in jobs]",
            "[Alone.AGAIN for new in jobs]",
        ),),
    ),
    Mutant(
        "a caller that was cancelled takes its batch with it", "G7",
        f"{TOGETHER}::test_a_caller_that_is_cancelled_after_its_job_was_sent_ends_alone_and_its_row_stays",
        (Patch(
            "client/gathering/async_line.py", "        if not self.answer.done():\n            self.answer.set_result(answer)\n",
            "        self.answer.set_result(answer)\n",
        ),),
        red_by=("InvalidStateError",),
    ),
    Mutant(
        "a caller that was cancelled is sent all the same", "G7",
        f"{TOGETHER}::test_a_caller_that_is_cancelled_before_its_job_is_sent_is_left_out",
        (Patch("client/gathering/batches.py", "if not waiting[0].is_left:", "if True:"),),
    ),
    Mutant(
        "a batch may hold any number of bytes", "G13",
        f"{TOGETHER}::test_the_bytes_of_a_batch_are_bounded",
        (Patch("client/gathering/batches.py", "if batch and size > bytes_max:", "if False:"),),
    ),
    Mutant(
        "a held key holds up the other keys", "G13",
        f"{TROUBLE}::test_a_key_that_another_transaction_holds_delays_no_other",
        (Patch("client/gathering/batches.py", "OVERTAKE_SECONDS: Final = 0.1", "OVERTAKE_SECONDS: Final = 3600.0"),),
    ),
    Mutant(
        "a batch waits for a transaction that holds a key", "G13",
        "tests/sql/test_enqueue_each.py::test_a_held_key_is_not_waited_for_long",
        (sql("enqueue_each", "perform set_config('lock_timeout', '100ms', true);", "null;"),),
    ),
    Mutant(
        "a batch creates lanes", "G13",
        "tests/sql/test_enqueue_each.py::test_a_job_without_a_lane_is_left_out_and_creates_none",
        (sql(
            "enqueue_each",
            "(select lane.id from faultline.lanes as lane\n"
            "       where not lane.is_full and lane.queue = named.queue and lane.priority = coalesce(named.priority, 0)) as lane",
            "faultline.lane_of(named.queue, coalesce(named.priority, 0)) as lane",
        ),),
    ),
    Mutant(
        "a gathered enqueue may be lost in a crash", "G1",
        "tests/promises/test_09_what_matters_is_durable.py::"
        "test_what_is_too_low_is_raised_inside_the_transaction_and_no_longer",
        (sql("enqueue_each", "  perform faultline.be_durable();\n", ""),),
    ),
    Mutant(
        "gathered jobs are enqueued without a look at the server", "G14",
        "tests/promises/test_13_a_number_is_given_once.py::test_every_way_to_a_number_notices_another_server",
        (sql("enqueue_each", "  perform faultline.check_server();\n", ""),),
    ),
    Mutant(
        "a forked child waits for the calls of its parent", "G7",
        f"{TROUBLE}::test_a_forked_child_does_not_wait_for_the_calls_of_its_parent",
        (Patch("client/gathering/app_lines.py", "if self._pid != os.getpid():\n            self._forget()", "if False:\n            self._forget()"),),
    ),
)  # fmt: skip
