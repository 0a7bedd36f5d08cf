"""Mutants of what one key, or one address, may take of a server's time, memory and connections."""

from proof.mutants.mutant import Mutant, Patch

PACING = "tests/server/test_document_pacing.py"
BODIES = "tests/http/test_bodies.py"
TLS = "tests/server/test_tls.py"

MUTANTS = (
    Mutant(
        "large documents are checked as they come", "G13",
        f"{PACING}::test_checks_of_many_calls_come_one_to_a_turn_of_the_loop",
        (Patch("server/throttling/document_pacing.py", "        await self._begin(name_of_turn())\n", ""),),
    ),
    Mutant(
        "large documents are checked in the order of arrival", "G13",
        f"{PACING}::test_keys_take_turns_and_one_that_leaves_holds_none_up",
        (Patch("server/throttling/document_pacing.py", "self._begin(name_of_turn())", 'self._begin("")'),),
        red_by=("AssertionError",),
    ),
    Mutant(
        "results are checked without a turn", "G13", f"{PACING}::test_every_door_paces_its_large_documents",
        (Patch("server/grpc/sessions/result_settler.py", "all_of(checks, size)", "all_of(checks, 0)"),),
    ),
    Mutant(
        "every number with an exponent is read singly", "G13",
        f"{PACING}::test_a_number_with_an_exponent_costs_no_python_of_its_own",
        (Patch(
            "args/scan.py", "        lower, has_long = self.lower(), _MANY in form\n",
            "        lower, has_long = self.lower(), _MANY in form\n"
            "        for found in _POWERED.finditer(lower):\n"
            "            if _is_too_large((found.group(1), b'', found.group(2))):\n"
            "                return NUMBER_TOO_LARGE\n",
        ),),
    ),
    Mutant(
        "unfinished bodies of one key take all the room", "G13",
        f"{BODIES}::test_unfinished_bodies_of_one_key_stop_no_writes_of_another",
        (Patch("server/http/guard/bodies.py", "TOGETHER_OF_A_KEY: Final = 6", "TOGETHER_OF_A_KEY: Final = 60"),),
    ),
    Mutant(
        "a body is read though its key may write nothing", "G13",
        f"{BODIES}::test_a_key_that_may_write_nothing_is_answered_before_its_body",
        (Patch("server/http/guard/request_guard.py", 'elif not (caller.may("operate") or caller.may("enqueue")):', "elif False:"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "a batch is read though its key may not enqueue", "G13",
        f"{BODIES}::test_a_key_that_may_not_enqueue_is_answered_before_its_batch",
        (Patch("server/http/guard/request_guard.py", '            caller.require("enqueue")\n', "            pass\n"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "a body that was begun before its key was revoked is acted on", "G15",
        f"{BODIES}::test_a_key_that_is_revoked_while_its_body_comes_does_nothing",
        (Patch("server/http/guard/request_guard.py", "if monotonic() - began > LOOK_AGAIN_SECONDS:", "if False:"),),
    ),
    Mutant(
        "handshakes are not counted among the connections of an address", "G13",
        f"{TLS}::test_handshakes_that_are_not_finished_count_among_the_connections_of_an_address",
        (Patch("server/listener/tls_handshakes.py", "        self._counts[address] += 1\n", ""),),
        red_by=("TimeoutError",),
    ),
)  # fmt: skip
