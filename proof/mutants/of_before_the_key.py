"""Mutants of what stands before a key is known, and of what has to end with one."""

from proof.mutants.mutant import Mutant, Patch

BEFORE = "tests/server/test_before_the_key.py"
ONE_EACH = "tests/server/test_one_answer_each.py"
WHO = "tests/api/test_s2_who_may_do_what.py"
ACCESS = "tests/remote/test_access.py"
TLS = "tests/server/test_tls.py"
RECEIVING = "tests/remote/test_receiving.py"

MUTANTS = (
    Mutant(
        "a trailer becomes a header", "G13", f"{BEFORE}::test_a_trailer_is_no_header",
        (Patch("server/protocol.py", "        if self._in_head:  # else", "        if True:  # else"),),
    ),
    Mutant(
        "health is watched without a key", "G15",
        f"{BEFORE}::test_health_watch_and_reflection_take_a_key_and_check_does_not",
        (Patch(
            "remote/serving/keyed.py",
            "caller = await self._gate.who(context)\n            with self._gate.passing(caller, WAIT):\n"
            "                async with self",
            "caller = LOOPBACK\n            with self._gate.passing(caller, WAIT):\n                async with self",
        ),
        Patch(
            "remote/serving/keyed.py", "self._gate.while_known(context, super().Watch(request, context))",
            "super().Watch(request, context)",
        ),
        Patch(
            "remote/serving/keyed.py", "from faultline.remote.serving.problems",
            "from faultline.access import LOOPBACK\nfrom faultline.remote.serving.problems",
        )),
    ),
    Mutant(
        "requests wait on one connection without end", "G13",
        f"{BEFORE}::test_requests_that_come_all_at_once_are_bounded",
        (Patch("server/protocol.py", "len(self.pipeline) >= self.limits.pipelined_max", "False"),),
    ),
    Mutant(
        "a message is read before its caller is known", "G15",
        f"{RECEIVING}::test_a_call_without_a_key_is_ended_before_its_message_is_there",
        (Patch("remote/serving/server.py", "KeyFirst(self._server, self.config)", "self._server"),),
    ),
    Mutant(
        "a connection needs no key to stay", "G13",
        f"{BEFORE}::test_a_connection_whose_requests_are_not_let_in_is_closed",
        (Patch("server/protocol.py", "        if self.is_admitted:\n            return\n", "        return\n"),),
        red_by=("DID NOT RAISE", "Failed"),
    ),
    Mutant(
        "one address takes every connection", "G13",
        f"{BEFORE}::test_one_address_has_so_many_connections_and_another_has_room",
        (Patch("server/protocol.py", "most is not None and self.of_address[self.address] > most", "False"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "this machine is trusted unasked", "G15",
        f"{WHO}::test_without_being_told_to_trust_this_machine_every_request_needs_a_key",
        (Patch("api/gate.py", "config.trust_loopback and not config.behind_proxy", "not config.behind_proxy"),),
    ),
    Mutant(
        "a call that a proxy passed on is taken for one from here", "G15",
        f"{ACCESS}::test_a_call_that_was_passed_on_is_not_from_this_machine",
        (Patch("remote/serving/gate.py", "trusted and not was_passed_on(context) and", "trusted and"),),
        red_by=("DID NOT RAISE", "Failed"),
    ),
    Mutant(
        "a long poll over HTTP outlives its key", "G15", f"{WHO}::test_a_key_that_is_revoked_ends_its_long_poll",
        (Patch("api/gate.py", "await while_known(served, asked.scope[\"state\"][\"who\"])", "await served"),),
    ),
    Mutant(
        "the body of a request is the next request", "G15",
        f"{BEFORE}::test_a_body_is_never_taken_for_the_next_request",
        (Patch("server/protocol.py", "        if not self.parser.should_upgrade():\n", "        if True:\n"),),
    ),
    Mutant(
        "a refused request takes the answer of the one before it", "G13",
        f"{ONE_EACH}::test_a_request_is_answered_whatever_comes_behind_it",
        (Patch("server/protocol.py", "        if not self._close_behind_answers():\n", "        if True:\n"),),
    ),
    Mutant(
        "trailers are read for as long as they come", "G13",
        f"{BEFORE}::test_trailers_are_dropped_and_their_bytes_are_bounded",
        (Patch("server/protocol.py", "            self._behind_body += len(data)\n", "            pass\n"),),
    ),
    Mutant(
        "a renewed certificate waits for a restart", "G15",
        f"{TLS}::test_a_renewed_certificate_is_used_without_a_restart_and_a_bad_one_is_not",
        (Patch("server/tls.py", "if version == self._read_of or", "if True or"),),
    ),
    Mutant(
        "a long poll outlives its key", "G15", f"{ACCESS}::test_a_key_that_is_revoked_ends_its_long_poll",
        (Patch("remote/serving/gate.py", "if kind in LONG:", "if False:"),),
        red_by=("TimeoutError",),
    ),
)  # fmt: skip
