"""Mutants of the HTTP API: each forgets one thing the gate, or a route behind it, has to look at."""

from proof.mutants.mutant import Mutant, Patch

WHO = "tests/http/test_s2_who_may_do_what.py"
PAGES = "tests/http/test_s3_other_peoples_pages.py"
SLOW = "tests/http/test_s6_slow_and_greedy_clients.py"
GATHER = "tests/http/test_batcher.py"
HEALTH = "tests/http/test_health.py"
DOOR = "tests/server/test_listen_policy.py"
OPERATING = "tests/http/test_operating.py"

MUTANTS = (
    Mutant(
        "the acts of a job are told whatever its queue", "G15",
        "tests/http/test_s2_one_scope_one_queue.py::test_s2_acts_of_a_job_are_told_by_queue_too",
        (Patch("sql/functions/access/list_acts.sql", "      and (list_acts.queue is null or act.queue = list_acts.queue)\n      and (list_acts.verb",
               "      and (list_acts.verb"),),
    ),
    Mutant(
        "a key that may only operate is shown the payload", "G15",
        "tests/http/test_s2_one_scope_one_queue.py::test_s2_an_operator_that_may_not_read_gets_no_payload",
        (Patch("server/http/routes/job_acts.py", 'if caller.may("read", job.queue) else models.bare_view(job)', "if job else models.bare_view(job)"),),
    ),
    Mutant(
        "an API behind a proxy takes every client for a local one", "G15",
        f"{WHO}::test_s2_every_route_but_health_refuses_a_client_without_a_key",
        (Patch("server/auth/authenticator.py", "trust_loopback and not behind_proxy", "True"),),
    ),
    Mutant(
        "a proxy that is not configured lends its address to its clients", "G15",
        f"{WHO}::test_a_client_behind_a_proxy_is_not_on_this_machine",
        (Patch("server/http/guard/request_head.py", "self.peer, self.passed_on)", "self.peer, False)"),),
    ),
    Mutant(
        "a job of another queue is shown", "G15", f"{WHO}::test_s2_a_job_of_another_queue_is_not_there",
        (Patch("server/http/dependencies.py", "if job is not None and not caller.may(scope, job.queue):", "if False:"),),
    ),
    Mutant(
        "a key for one queue fills another", "G15", f"{WHO}::test_s2_a_key_for_one_queue_sees_and_fills_only_that_one",
        (Patch("server/http/submit/fast_path.py", '    caller.require("enqueue", new.queue)\n', ""),),
    ),
    Mutant(
        "a key for one queue lists them all", "G15", f"{WHO}::test_s2_a_key_for_one_queue_sees_and_fills_only_that_one",
        (Patch("server/http/dependencies.py", "return None if caller.queues is None else sorted(caller.queues)", "return None"),),
    ),
    Mutant(
        "a key in the URL is taken", "G15", f"{WHO}::test_s12_a_key_in_the_url_is_refused_even_if_it_is_good",
        (Patch("server/http/guard/request_head.py", '(query and _A_KEY.search(query)) or "flk_" in self.scope["path"]', "False"),),
    ),
    Mutant(
        "a client that guesses keys is not slowed down", "G15",
        f"{WHO}::test_s12_wrong_keys_are_slowed_down_and_good_ones_from_the_same_address_are_not",
        (Patch("server/auth/wrong_keys.py", "        if self._rate.take(address):\n", "        if True:\n"),),
    ),
    Mutant(
        "a form can cancel a job", "G15", f"{PAGES}::test_s3_what_a_form_can_send_is_refused",
        (Patch("server/http/guard/request_guard.py", "            _check_media_type(head)\n", "            pass\n"),),
    ),
    Mutant(
        "a page from elsewhere may ask", "G15", f"{PAGES}::test_s3_a_page_from_elsewhere_is_refused_also_with_a_key",
        (Patch("server/http/guard/request_guard.py", "        self._check_origin(head)\n", ""),),
    ),
    Mutant(
        "any name is ours", "G15", f"{PAGES}::test_s4_a_name_that_is_not_ours_is_refused",
        (Patch("server/http/guard/request_guard.py", "        self._check_host(head, key)\n", ""),),
    ),
    Mutant(
        "a name of ours behind an @ is ours", "G15", f"{PAGES}::test_s4_what_is_no_host_name_is_refused",
        (Patch("server/http/guard/request_head.py", 'if _NO_HOST.search(self.headers.get(b"host", "")):', "if False:"),),
    ),
    Mutant(
        "a request's target names another server", "G15",
        f"{PAGES}::test_s4_an_absolute_target_names_the_same_server_as_the_host_header",
        (Patch("server/http/connection/http_protocol.py", "return bool(is_absolute) and hosts != [authority.lower()]", "return False"),),
    ),
    Mutant(
        "a proxy with a header of its own is not seen", "G15",
        f"{WHO}::test_a_client_behind_a_proxy_is_not_on_this_machine",
        (Patch("server/config.py", "header in _FORWARDED or header.startswith(_FORWARDED_BEGINS)", "header in _FORWARDED"),),
    ),
    Mutant(
        "any address is the one a connection came in at", "G15", f"{PAGES}::test_s4_the_address_a_connection_came_in_at_is_ours",
        (Patch("server/http/guard/request_head.py", "return ours is not None and ours == _address(host)", "return _address(host) is not None"),),
    ),
    Mutant(
        "a server without keys listens everywhere", "G15",
        f"{DOOR}::test_s5_a_server_told_to_listen_everywhere_without_keys_does_not_start",
        (Patch("server/process.py", "            check_listen_policy(self.config, keys=len(keys))\n", ""),),
    ),
    Mutant(
        "a head may take any time", "G13", f"{SLOW}::test_s6_a_connection_that_says_nothing_is_closed",
        (Patch("server/http/connection/head_bounds.py", "self._loop.call_later(self._limits.head_seconds_max, self._is_late)", "None"),),
    ),
    Mutant(
        "a refused request keeps a place while it is heard out", "G13",
        f"{SLOW}::test_s6_requests_that_were_refused_hold_no_room_while_they_are_heard_out",
        (Patch("server/http/connection/http_protocol.py", " or (bool(self.cycle) and HEARD_OUT in self.cycle.scope)", ""),),
    ),
    Mutant(
        "a body may be of any size", "G13",
        f"{SLOW}::test_a_body_past_the_limit_is_refused_while_it_is_still_being_sent",
        (
            Patch("server/http/guard/bodies.py", "        if size > most:\n", "        if False:\n"),
            Patch("server/http/guard/bodies.py", "if said is not None and said > most:", "if False:"),
        ),
    ),
    Mutant(
        "one bad job fails those that came with it", "G13", f"{GATHER}::test_one_bad_job_does_not_fail_the_others",
        (Patch("server/http/submit/batcher.py", "len(batch) > 1 and isinstance(error, InputError | KeyConflict)", "False"),),
    ),
    Mutant(
        "a submit whose reply was lost is sent again", "G7",
        f"{GATHER}::test_a_lost_reply_is_told_as_unknown_and_nothing_is_sent_twice",
        (Patch("server/http/submit/batcher.py", "len(batch) > 1 and isinstance(error, InputError | KeyConflict)", "len(batch) > 1"),),
    ),
    Mutant(
        "a queue that is held up holds up the others", "G13",
        f"{GATHER}::test_a_locked_queue_holds_up_no_other",
        (Patch("server/http/submit/batcher.py", "CALLS_AT_ONCE: Final = 8", "CALLS_AT_ONCE: Final = 1"),),
    ),
    Mutant(
        "an answer quotes an unforeseen error", "G15",
        f"{HEALTH}::test_an_unforeseen_error_tells_its_number_and_nothing_else",
        (Patch("server/http/problem_document.py", 'return Problem(kind, "", retry_after)', "return Problem(kind, str(error), retry_after)"),),
    ),
    Mutant(
        "a bulk act is done whatever was confirmed", "G15",
        f"{OPERATING}::test_a_bulk_act_is_counted_first_and_done_with_the_count_confirmed",
        (Patch("server/http/routes/bulk_acts.py", "    if count != wanted.confirm:\n", "    if False:\n"),),
    ),
    Mutant(
        "an act is noted as the server's own", "G12",
        f"{OPERATING}::test_a_cancelled_job_is_cancelled_and_the_act_is_noted",
        (Patch("server/auth/acting.py", "await act.run(calls.act_as(caller.actor, reason))", "pass"),),
    ),
    Mutant(
        "a certificate that was revoked opens what it opened", "G15",
        "tests/server/test_tls.py::test_s11_a_certificate_that_is_revoked_opens_nothing_any_more",
        (Patch("server/http/connection/revocation_check.py", "return shown is not None and self._revoked.lists(shown)", "return False"),),
    ),
)  # fmt: skip
