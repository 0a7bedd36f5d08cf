"""Mutants of what is done about a server that does not answer, and about one that wakes up too late."""

from proof.mutants.mutant import Mutant, Patch, worker

SILENCE = "tests/store/test_silence.py"
HOSTS = "tests/store/test_hosts.py"
STATE = "tests/sql/test_server_state.py"


def hosts(old: str, new: str) -> Patch:
    return Patch("store/servers/hosts.py", old, new)


MUTANTS = (
    Mutant(
        "an old primary that woke up is connected to",
        "G14",
        f"{SILENCE}::test_a_server_that_is_left_behind_between_the_choice_and_the_connection_is_refused",
        (
            hosts(
                "        if EPOCHS.is_past(self.place, state):\n            self.forget()",
                "        if False:\n            self.forget()",
            ),
        ),
    ),
    Mutant(
        "an old primary is chosen where it alone answers",
        "G14",
        f"{HOSTS}::test_a_lower_epoch_than_was_seen_is_never_chosen",
        (hosts("            if not EPOCHS.is_past(self.place, state)\n", ""),),
    ),
    Mutant(
        "the first host that takes writes is taken, not the newest",
        "G14",
        f"{HOSTS}::test_the_newest_that_takes_writes_is_chosen",
        (hosts("return max(fit, key=fit.__getitem__, default=None)", "return next(iter(fit), None)"),),
    ),
    Mutant(
        "two histories of one epoch are taken for equally new",
        "G14",
        f"{HOSTS}::test_the_newest_that_takes_writes_is_chosen",
        (hosts("return self.epoch, self.token", "return self.epoch, 0"),),
    ),
    Mutant(
        "connections to a server that was left behind are used again",
        "G14",
        f"{SILENCE}::test_a_primary_that_wakes_up_is_not_used_again",
        (
            hosts(
                "return self.state is not None and EPOCHS.is_past(self.hosts.place, self.state)",
                "return False",
            ),
        ),
    ),
    Mutant(
        "each connection to a silent server is tried in turn",
        "G10",
        f"{HOSTS}::test_what_was_connected_to_a_server_before_it_was_given_up_is_not_used_again",
        (hosts("            self._left_at[host] = monotonic()\n", ""),),
    ),
    Mutant(
        "a slow server that lives is left",
        "G10",
        f"{HOSTS}::test_a_second_look_waits_for_a_server_that_lives",
        (
            hosts(
                "        if here is not None:\n            return None, self.after",
                "        if False:\n            return None, self.after",
            ),
        ),
    ),
    Mutant(
        "an unanswered call of the loop has no second look",
        "G10",
        f"{SILENCE}::test_an_async_store_finds_the_new_primary",
        (
            Patch(
                "store/driver/exchange.py",
                "            self._unanswered(self, self._watch.loop.time() - self._began_at)",
                "            pass",
            ),
        ),
    ),
    Mutant(
        "an unanswered call of a thread has no second look",
        "G10",
        f"{SILENCE}::test_a_store_finds_the_new_primary",
        (
            Patch(
                "store/driver/async_connection.py",
                "gen if look is None else self._looking_twice(gen, look)",
                "gen",
            ),
        ),
    ),
    Mutant(
        "a server does not count the promotion that no claim has noted",
        "G14",
        f"{STATE}::test_an_upgrade_or_a_restore_counts_before_the_first_claim_has_noted_it",
        (
            Patch(
                "sql/functions/maintenance/server_state.sql",
                "known.system_identifier <> cluster or known.timeline > here",
                "false",
            ),
        ),
    ),
    Mutant(
        "a pacemaker stays with a frozen primary",
        "G8",
        "tests/worker/test_silent_primary.py"
        "::test_jobs_flow_soon_after_the_promotion_and_the_woken_primary_gets_no_claim",
        (
            worker(
                "heartbeat/pacemaker",
                "            look_after=look_after(self._lease),\n",
                "            look_after=1e9,\n",
            ),
        ),
    ),
)
