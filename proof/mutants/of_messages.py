"""Mutants of what messages cost the gRPC server: weighed before they are parsed, and let go of."""

from proof.mutants.mutant import Mutant, Patch

HELD = "tests/grpc/test_held_messages.py"
WEIGHING = "tests/grpc/test_message_bounds.py"


def serving(module: str, old: str, new: str) -> Patch:
    return Patch(f"server/grpc/{module}.py", old, new)


MUTANTS = (
    Mutant(
        "a refused call keeps its message", "G13", f"{WEIGHING}::test_refused_calls_leave_no_message_behind",
        (serving("call_status", "    while error is not None:\n", "    while False:\n"),),
    ),
    Mutant(
        "a probe may be of any length", "G13", f"{WEIGHING}::test_a_probe_asks_in_a_few_bytes",
        (serving("guard/message_bounds", "\"Check\": MessageBound(PROBE_BYTES_MAX)", "\"Check\": MessageBound(whole)"),),
    ),
    Mutant(
        "a message is parsed whatever it becomes", "G13",
        f"{WEIGHING}::test_a_message_that_would_grow_is_refused_before_it_is_parsed",
        (serving("guard/message_bounds", "        if len(raw) > self.fields_max:", "        if False:"),),
    ),
    Mutant(
        "any message of a session may be as long as results", "G13",
        f"{HELD}::test_only_results_of_a_session_are_long",
        (serving("sessions/session_reader", "    if len(came) > LIST_BYTES_MAX:\n", "    if False:\n"),),
        red_by=("Broken", "TimeoutError"),
    ),
    Mutant(
        "large results of one key are held without number", "G13",
        f"{HELD}::test_large_results_of_sessions_are_so_many_of_one_key",
        (serving("sessions/session_reader", "if len(came) > LARGE_BYTES else None", "if False else None"),),
    ),
    Mutant(
        "a long poll keeps the place of its message", "G13",
        f"{HELD}::test_long_polls_keep_no_place_for_their_messages",
        (serving("guard/message_reader", "        if lasting or len(message)", "        if len(message)"),),
        red_by=("AioRpcError",),
    ),
    Mutant(
        "a probe that says nothing keeps its place", "G13",
        f"{HELD}::test_the_oldest_probe_of_the_greediest_address_makes_room",
        (serving("guard/keyless_calls", "                    one.ended.set_result(None)\n", "                    pass\n"),),
    ),
    Mutant(
        "a message outlives its key", "G15",
        f"{HELD}::test_a_key_that_is_revoked_while_its_message_is_on_its_way_does_nothing",
        (serving("guard/call_guard", "if monotonic() - began > AGAIN_SECONDS:", "if False:"),),
        red_by=("DID NOT RAISE", "Failed"),
    ),
    Mutant(
        "answers that are not read are held without number", "G13",
        f"{HELD}::test_answers_that_are_not_read_are_so_many_of_one_key_and_end",
        (serving("jobs_service", "PayloadBudget(config.answer_bytes_max, config.answer_bytes_per_key)", "PayloadBudget(2**40, 2**40)"),),
    ),
)  # fmt: skip
