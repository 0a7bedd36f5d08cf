"""Mutants of the HTTP API: each forgets one thing the gate, or a route behind it, has to look at."""

from proof.mutants.mutant import Mutant, Patch

WHO = "tests/api/test_s2_who_may_do_what.py"
PAGES = "tests/api/test_s3_other_peoples_pages.py"
SLOW = "tests/api/test_s6_slow_and_greedy_clients.py"
GATHER = "tests/api/test_gathering.py"
HEALTH = "tests/api/test_health.py"
DOOR = "tests/server/test_the_door.py"
OPERATING = "tests/api/test_operating.py"

MUTANTS = (
    Mutant(
        "the acts of a job are told whatever its queue", "G15",
        "tests/api/test_s2_one_scope_one_queue.py::test_s2_acts_of_a_job_are_told_by_queue_too",
        (Patch("sql/functions/list_acts.sql", "      and (list_acts.queue is null or act.queue = list_acts.queue)\n      and (list_acts.verb",
               "      and (list_acts.verb"),),
    ),
    Mutant(
        "who operates on a job is shown its payload", "G15",
        "tests/api/test_s2_one_scope_one_queue.py::test_s2_who_operates_and_may_not_read_gets_no_payload",
        (Patch("api/routes/operate.py", 'if caller.may("read", job.queue) else models.bare_view(job)', "if job else models.bare_view(job)"),),
    ),
    Mutant(
        "an API behind a proxy takes everybody for a neighbour", "G15",
        f"{WHO}::test_s2_every_route_but_health_refuses_whoever_has_no_key",
        (Patch("api/gate.py", "config.trust_loopback and not config.behind_proxy", "True"),),
    ),
    Mutant(
        "a proxy nobody told us of lends its address to the world", "G15",
        f"{WHO}::test_whoever_was_passed_on_is_not_on_this_machine",
        (Patch("api/gate.py", "trusted and not asked.passed_on and", "trusted and"),),
    ),
    Mutant(
        "a job of another queue is shown", "G15", f"{WHO}::test_s2_a_job_of_another_queue_is_not_there",
        (Patch("api/needs.py", "if job is not None and not caller.may(scope, job.queue):", "if False:"),),
    ),
    Mutant(
        "a key for one queue fills another", "G15", f"{WHO}::test_s2_a_key_for_one_queue_sees_and_fills_only_that_one",
        (Patch("api/submit.py", '    caller.require("enqueue", new.queue)\n', ""),),
    ),
    Mutant(
        "a key for one queue lists them all", "G15", f"{WHO}::test_s2_a_key_for_one_queue_sees_and_fills_only_that_one",
        (Patch("api/needs.py", "return None if caller.queues is None else sorted(caller.queues)", "return None"),),
    ),
    Mutant(
        "a key in the URL is taken", "G15", f"{WHO}::test_s12_a_key_in_the_url_is_refused_even_if_it_is_good",
        (Patch("api/asked.py", '(query and _A_KEY.search(query)) or "flk_" in self.scope["path"]', "False"),),
    ),
    Mutant(
        "whoever guesses keys is not slowed down", "G15",
        f"{WHO}::test_s12_wrong_keys_are_slowed_down_and_good_ones_from_the_same_address_are_not",
        (Patch("server/wrong_keys.py", "        if self._rate.take(address):\n", "        if True:\n"),),
    ),
    Mutant(
        "a form can cancel a job", "G15", f"{PAGES}::test_s3_what_a_form_can_send_is_refused",
        (Patch("api/gate.py", "            _check_media_type(asked)\n", "            pass\n"),),
    ),
    Mutant(
        "a page from elsewhere may ask", "G15", f"{PAGES}::test_s3_a_page_from_elsewhere_is_refused_also_with_a_key",
        (Patch("api/gate.py", "        self._check_origin(asked)\n", ""),),
    ),
    Mutant(
        "any name is ours", "G15", f"{PAGES}::test_s4_a_name_that_is_not_ours_is_refused",
        (Patch("api/gate.py", "        self._check_host(asked, key)\n", ""),),
    ),
    Mutant(
        "any address is the one a connection came in at", "G15", f"{PAGES}::test_s4_the_address_a_connection_came_in_at_is_ours",
        (Patch("api/asked.py", "return ours is not None and ours == _address(host)", "return _address(host) is not None"),),
    ),
    Mutant(
        "a server without keys listens everywhere", "G15",
        f"{DOOR}::test_s5_a_server_told_to_listen_everywhere_without_keys_does_not_start",
        (Patch("server/server.py", "            check_door(self.config, keys=len(keys))\n", ""),),
    ),
    Mutant(
        "a head may take for ever", "G13", f"{SLOW}::test_s6_a_connection_that_says_nothing_is_closed",
        (Patch("server/protocol.py", "self.loop.call_later(self.limits.head_seconds_max, self._head_is_late)", "None"),),
    ),
    Mutant(
        "who was refused keeps a place while it is heard out", "G13",
        f"{SLOW}::test_s6_requests_that_were_refused_hold_no_room_while_they_are_heard_out",
        (Patch("server/protocol.py", " or (bool(self.cycle) and HEARD_OUT in self.cycle.scope)", ""),),
    ),
    Mutant(
        "a body may be of any size", "G13",
        f"{SLOW}::test_a_body_past_the_limit_is_refused_while_it_is_still_being_sent",
        (
            Patch("api/bodies.py", "        if size > most:\n", "        if False:\n"),
            Patch("api/bodies.py", "if said is not None and said > most:", "if False:"),
        ),
    ),
    Mutant(
        "one bad job fails those that came with it", "G13", f"{GATHER}::test_one_bad_job_does_not_fail_the_others",
        (Patch("api/gathering.py", "len(batch) > 1 and isinstance(error, InputError | KeyConflict)", "False"),),
    ),
    Mutant(
        "a submit whose reply was lost is sent again", "G7",
        f"{GATHER}::test_a_lost_reply_is_told_as_unknown_and_nothing_is_sent_twice",
        (Patch("api/gathering.py", "len(batch) > 1 and isinstance(error, InputError | KeyConflict)", "len(batch) > 1"),),
    ),
    Mutant(
        "a queue that is held up holds up the others", "G13",
        f"{GATHER}::test_a_queue_that_somebody_holds_up_holds_up_no_other",
        (Patch("api/gathering.py", "CALLS_AT_ONCE: Final = 8", "CALLS_AT_ONCE: Final = 1"),),
    ),
    Mutant(
        "an answer quotes an error nobody foresaw", "G15",
        f"{HEALTH}::test_an_error_nobody_foresaw_tells_its_number_and_nothing_else",
        (Patch("api/problems.py", 'return Problem(UNFORESEEN, "")', "return Problem(UNFORESEEN, str(error))"),),
    ),
    Mutant(
        "a bulk act is done whatever was confirmed", "G15",
        f"{OPERATING}::test_a_bulk_act_is_counted_first_and_done_with_the_count_confirmed",
        (Patch("api/routes/bulk.py", "    if count != wish.confirm:\n", "    if False:\n"),),
    ),
    Mutant(
        "an act is noted as the server's own", "G12",
        f"{OPERATING}::test_a_cancelled_job_is_cancelled_and_the_act_is_noted",
        (Patch("access/acting.py", "await act.run(calls.act_as(caller.actor, reason))", "pass"),),
    ),
    Mutant(
        "a certificate that was revoked opens what it opened", "G15",
        "tests/server/test_tls.py::test_s11_a_certificate_that_is_revoked_opens_nothing_any_more",
        (Patch("server/protocol.py", "return shown is not None and revoked.lists(shown)", "return False"),),
    ),
)  # fmt: skip
