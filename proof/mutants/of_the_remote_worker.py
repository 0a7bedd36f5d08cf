"""Mutants of the worker over a server: what it makes of a server's answers, and of their absence."""

from proof.mutants.mutant import Mutant, Patch, worker

WORKER = "tests/remote/test_worker.py"
OUTAGE = "tests/remote/test_outage.py"
FOREIGN = "tests/remote/test_foreign_tasks.py"
FROZEN = "tests/remote/test_frozen_replica.py"

MUTANTS = (
    Mutant(
        "a result that a server refused is taken for accepted", "G4",
        f"{WORKER}::test_a_result_that_comes_late_is_refused_and_recorded_once",
        (Patch(
            "remote/settle_messages.py",
            'told.append(\n                    SettleRefusal(item.job_id, item.token, "refused", lost.reason, lost.current_token)\n                )', "pass",
        ),),
    ),
    Mutant(
        "a lease from a server is counted from its answer", "G5",
        f"{OUTAGE}::test_a_lease_is_counted_from_before_its_ask_was_sent",
        (worker(
            "claiming/job_intake", "list(self._attempts(rows, claim, sent))", "list(self._attempts(rows, claim, time.monotonic()))",
        ),),
    ),
    Mutant(
        "what a server did not answer is taken for unsent", "G7",
        f"{OUTAGE}::test_a_result_whose_answer_was_lost_is_recorded_once_and_not_refused",
        (Patch(
            "remote/worker_stream.py", "waiting.set_exception(ServerUnavailable(why))",
            "waiting.set_exception(CannotConnect(why))",
        ),),
    ),
    Mutant(
        "a pacemaker takes a server's lost for held", "G4",
        f"{WORKER}::test_a_job_that_another_took_is_stopped",
        (Patch("remote/call_messages.py", '    rpc.PULSE_LOST: "lost",\n', '    rpc.PULSE_LOST: "held",\n'),),
    ),
    Mutant(
        "a beat is sent again to the replica that is silent", "G5",
        f"{FROZEN}::test_a_beat_goes_on_to_the_next_replica_at_once",
        (Patch("remote/remote_heartbeat.py", "place = self._place + number", "place = self._place"),),
    ),
    Mutant(
        "a stream to a frozen replica is kept", "G5",
        f"{FROZEN}::test_a_silent_stream_is_left_for_the_next_replica",
        (Patch("remote/worker_stream.py", "if not await self._hears_since(asked_at, silence):", "if False:"),),
    ),
    Mutant(
        "a loop that was held up takes its server for silent", "G10",
        "tests/remote/test_held_up_loop.py"
        "::test_a_server_that_answers_is_kept_after_the_loop_was_held_up",
        (Patch("remote/worker_stream.py", "TURNS: Final = 5", "TURNS: Final = 1"),),
    ),
    Mutant(
        "an Ask excepts tasks and gets their jobs", "G13",
        f"{FOREIGN}::test_two_apps_on_one_queue_put_off_none_of_each_others_jobs",
        (Patch("server/grpc/sessions/assigner.py", "        except_tasks=request.except_tasks,\n", ""),),
    ),
    Mutant(
        "a worker over a server excepts no task", "G13",
        f"{FOREIGN}::test_two_apps_on_one_queue_put_off_none_of_each_others_jobs",
        (Patch("remote/remote_backend.py", "        return bool(response.others)\n", "        return False\n"),),
    ),
    Mutant(
        "a wake-up ends with an Ask that excepts its task", "G13",
        "tests/grpc/test_excepted_tasks.py::test_a_job_that_one_ask_excepts_comes_to_the_next_that_waits",
        (Patch(
            "server/grpc/sessions/assigner.py", "self._wait_queue.pass_on_unused(waiter)", "pass",
        ),),
    ),
    Mutant(
        "an Ask may except any number of tasks, by any name", "G13",
        "tests/grpc/test_excepted_tasks.py"
        "::test_tasks_that_an_ask_cannot_except_are_refused_by_name_and_nothing_is_claimed",
        (Patch(
            "server/grpc/sessions/worker_service.py", "except_tasks=self._excepted(ask.except_tasks)",
            "except_tasks=list(ask.except_tasks)",
        ),),
    ),
    Mutant(
        "a claim that a server did not answer is not asked for again", "G8",
        f"{OUTAGE}::test_a_claim_whose_answer_was_lost_strands_no_job",
        (Patch("remote/call_messages.py", "        again=resend,\n", ""),),
    ),
    Mutant(
        "a single settling that a server refused is taken for accepted", "G4",
        f"{WORKER}::test_a_single_settling_that_is_refused_is_recorded_once",
        (Patch("remote/settle_messages.py", "                raise lease_lost(rest.refusal)\n", "                break\n"),),
    ),
    Mutant(
        "a result names the lease of another that went out with it", "G4",
        "tests/remote/test_remote_backend.py::test_each_of_a_batch_names_its_own_lease_and_says_how_it_ended",
        (Patch("remote/settle_messages.py", "        if claim is not last or token != form.token:\n", "        if last is None:\n"),),
    ),
    Mutant(
        "what one parcel left open is taken for unsent", "G7",
        "tests/remote/test_remote_backend.py::test_trouble_of_one_parcel_is_no_matter_of_the_others",
        (Patch("remote/settle_messages.py", 'word = "unknown" if _leaves_open(said) else "unsent"', 'word = "unsent"'),),
    ),
    Mutant(
        "a beat gives up on a connection after 50 ms", "G5",
        f"{FROZEN}::test_a_beat_waits_for_a_connection_over_a_slow_line",
        (Patch("remote/channel.py", '"grpc.min_reconnect_backoff_ms", 5_000', '"grpc.min_reconnect_backoff_ms", 50'),),
    ),
)  # fmt: skip
