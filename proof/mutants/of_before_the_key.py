"""Mutants of what stands before a key is known, and of what has to end with one."""

from proof.mutants.mutant import Mutant, Patch

BEFORE = "tests/server/test_before_the_key.py"
ONE_EACH = "tests/server/test_one_answer_each.py"
WHO = "tests/http/test_s2_who_may_do_what.py"
ACCESS = "tests/grpc/test_access.py"
TLS = "tests/server/test_tls.py"
RECEIVING = "tests/grpc/test_message_reader.py"

MUTANTS = (
    Mutant(
        "gRPC reads its certificates once", "G15",
        "tests/grpc/test_s11_tls.py::test_renewed_files_are_used_without_a_restart_and_bad_ones_are_not",
        (Patch("server/grpc/grpc_server.py", "return read() if certificates.renewed() else None", "return None"),),
    ),
    Mutant(
        "a trailer becomes a header", "G13", f"{BEFORE}::test_a_trailer_is_no_header",
        (Patch("server/http/connection/http_protocol.py", "        if self._in_head:  # a trailer", "        if True:  # a trailer"),),
    ),
    Mutant(
        "health is watched without a key", "G15",
        f"{BEFORE}::test_health_watch_and_reflection_take_a_key_and_check_does_not",
        (Patch(
            "server/grpc/health_service.py",
            "caller = await self._guard.who(context)\n            with self._guard.passing(caller, WAIT):\n"
            "                async with self",
            "caller = LOOPBACK\n            with self._guard.passing(caller, WAIT):\n                async with self",
        ),
        Patch(
            "server/grpc/health_service.py", "self._guard.while_known(context, super().Watch(request, context))",
            "super().Watch(request, context)",
        ),
        Patch(
            "server/grpc/health_service.py", "from faultline.server.grpc.call_status",
            "from faultline.server.auth import LOOPBACK\nfrom faultline.server.grpc.call_status",
        )),
    ),
    Mutant(
        "requests wait on one connection without end", "G13",
        f"{BEFORE}::test_requests_that_come_all_at_once_are_bounded",
        (Patch("server/http/connection/http_protocol.py", "len(self.pipeline) >= self.limits.pipelined_max", "False"),),
    ),
    Mutant(
        "a message is read before its caller is known", "G15",
        f"{RECEIVING}::test_a_call_without_a_key_is_ended_before_its_message_is_there",
        (Patch("server/grpc/grpc_server.py", "KeyFirst(self._server, self.config)", "self._server"),),
    ),
    Mutant(
        "a connection needs no key to stay", "G13",
        f"{BEFORE}::test_a_connection_whose_requests_are_not_let_in_is_closed",
        (Patch("server/http/connection/http_protocol.py", "        if self.is_admitted:\n            return\n", "        return\n"),),
        red_by=("DID NOT RAISE", "Failed"),
    ),
    Mutant(
        "one address takes every connection", "G13",
        f"{BEFORE}::test_one_address_has_so_many_connections_and_another_has_room",
        (Patch("server/http/connection/connection_places.py", "most is not None and self.of_address[new.address] > most", "False"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "this machine is trusted unasked", "G15",
        f"{WHO}::test_without_being_told_to_trust_this_machine_every_request_needs_a_key",
        (Patch("server/auth/authenticator.py", "trust_loopback and not behind_proxy", "not behind_proxy"),),
    ),
    Mutant(
        "a call that a proxy passed on is taken for one from here", "G15",
        f"{ACCESS}::test_a_call_that_was_passed_on_is_not_from_this_machine",
        (Patch("server/grpc/guard/call_guard.py", "key is None and was_passed_on(context)", "False"),),
        red_by=("DID NOT RAISE", "Failed"),
    ),
    Mutant(
        "a long poll over HTTP outlives its key", "G15", f"{WHO}::test_a_key_that_is_revoked_ends_its_long_poll",
        (Patch("server/http/guard/request_guard.py", "await while_known(served, head.scope[\"state\"][\"who\"])", "await served"),),
    ),
    Mutant(
        "the body of a request is the next request", "G15",
        f"{BEFORE}::test_a_body_is_never_taken_for_the_next_request",
        (Patch("server/http/connection/http_protocol.py", "        if not self.parser.should_upgrade():\n", "        if True:\n"),),
    ),
    Mutant(
        "a refused request takes the answer of the one before it", "G13",
        f"{ONE_EACH}::test_a_request_is_answered_whatever_comes_behind_it",
        (Patch("server/http/connection/answering_protocol.py", "        if not self._close_behind_answers():\n", "        if True:\n"),),
    ),
    Mutant(
        "trailers are read for as long as they come", "G13",
        f"{BEFORE}::test_trailers_are_dropped_and_their_bytes_are_bounded",
        (Patch("server/http/connection/head_bounds.py", "            self._behind_body += size\n", "            pass\n"),),
    ),
    Mutant(
        "a renewed certificate waits for a restart", "G15",
        f"{TLS}::test_a_renewed_certificate_is_used_without_a_restart_and_a_bad_one_is_not",
        (Patch("server/listener/tls.py", "if version == self._read_of or", "if True or"),),
    ),
    Mutant(
        "a long poll outlives its key", "G15", f"{ACCESS}::test_a_key_that_is_revoked_ends_its_long_poll",
        (Patch("server/grpc/guard/call_guard.py", "if kind in LONG:", "if False:"),),
        red_by=("TimeoutError",),
    ),
)  # fmt: skip
