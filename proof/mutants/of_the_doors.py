"""Mutants of what both doors of the server owe: an end to what a key opens, bounds, and no part that dies unseen."""

from proof.mutants.mutant import Mutant, Patch

EVENTS = "tests/http/test_events.py"
HEALTH = "tests/http/test_health.py"
GATHER = "tests/http/test_batcher.py"
ACCESS = "tests/grpc/test_access.py"

MUTANTS = (
    Mutant(
        "a stream of events outlives its key", "G15", f"{EVENTS}::test_s2_a_stream_ends_with_its_key",
        (
            Patch(
                "server/http/routes/event_stream.py",
                "if (reason := await _reason_to_end(who, subscriber.caller)) is not None:", "if reason := None:",
            ),
        ),
    ),
    Mutant(
        "a client that leaves before the first word takes a place for good", "G13",
        f"{EVENTS}::test_a_client_that_leaves_before_the_first_event_leaves_room",
        (Patch("server/http/routes/event_stream.py", "            self._context.feed.leave(self._subscriber)\n", "            pass\n"),),
    ),
    Mutant(
        "a key of one queue is shown the figures of all", "G15",
        f"{HEALTH}::test_a_key_of_one_queue_is_not_shown_the_figures_of_all",
        (Patch("server/http/routes/probes.py", "    see_all(caller)\n", ""),),
    ),
    Mutant(
        "trouble of the moment is told as a fault of the server", "G7",
        f"{HEALTH}::test_trouble_of_the_moment_is_told_as_such",
        (Patch("server/problems.py", "if isinstance(error, psycopg.Error) and is_of_this_moment(error):", "if False:"),),
    ),
    Mutant(
        "keyed jobs wait without an end", "G13",
        f"{GATHER}::test_keyed_jobs_that_cannot_be_sent_in_time_are_told_so",
        (Patch("server/http/submit/batcher.py", "async with asyncio.timeout(self._seconds_max):\n                    for turn in turns", "async with asyncio.timeout(None):\n                    for turn in turns"),),
    ),
    Mutant(
        "jobs of many kinds wait without an end", "G13",
        f"{GATHER}::test_jobs_that_cannot_be_sent_in_time_are_told_so",
        (Patch("server/http/submit/batcher.py", "            async with asyncio.timeout(self._seconds_max):\n                return await turn.acquire()\n",
               "            return await turn.acquire()\n"),),
    ),
    Mutant(
        "a client that guesses keys over gRPC is never told to wait", "G15",
        f"{ACCESS}::test_a_client_that_guesses_keys_has_to_wait_and_a_good_key_has_not",
        (Patch("server/auth/wrong_keys.py", "        if self._rate.take(address):\n", "        if True:\n"),),
    ),
    Mutant(
        "one job that cannot be given back keeps the others", "G8",
        "tests/grpc/test_undelivered.py::test_one_that_cannot_be_given_back_does_not_keep_the_others",
        (Patch("server/grpc/sessions/assigner.py", "except (FaultlineError, psycopg.Error, TimeoutError) as error:", "except FaultlineError as error:"),),
        red_by=("DeadlockDetected",),
    ),
    Mutant(
        "a part of the gRPC server that fails is gone", "G13",
        "tests/grpc/test_draining.py::test_a_listener_that_fails_keeps_no_other_from_hearing",
        (Patch("server/grpc/grpc_server.py", "asyncio.create_task(_kept(part))", "asyncio.create_task(part())"),),
    ),
)  # fmt: skip
