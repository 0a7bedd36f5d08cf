"""Mutants of what is done about a server that turned read-only, and about a commit of which nobody can tell."""

from proof.mutants.mutant import Mutant, Patch, worker

POOLS = "tests/store/test_turned.py"
HANDLERS = "tests/worker/test_turned.py"
SERVER = "tests/api/test_turned.py"


def store(module: str, old: str, new: str) -> Patch:
    return Patch(f"store/{module}.py", old, new)


MUTANTS = (
    Mutant(
        "a call that a server turned read-only refused is not tried again", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store(
            "run", "            try:\n                return self._run(POOL_WAIT_SECONDS, call, hint)\n            except CannotConnect as away:",
            "            try:\n                raise refused\n            except CannotConnect as away:",
        ),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "an awaited call that a server turned read-only refused is not tried again", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store(
            "run", "            try:\n                return await self._run(POOL_WAIT_SECONDS, call, hint)\n            except",
            "            try:\n                raise refused\n            except",
        ),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "sessions of a server that turned read-only are lent again", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store("run", "                pool.drain()  # and its neighbours with it, which have the same server\n", "                pass\n"),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "sessions of a server that turned read-only are lent again in the loop", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store("run", "                        await pool.drain()\n", "                        pass\n"),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "whoever only reads stays with a server that turned read-only", "G10",
        f"{POOLS}::test_who_only_reads_does_not_read_for_ever_what_is_old",
        (store("turned", "        if self.has_turned:\n            return True\n", ""),),
    ),
    Mutant(
        "where no server takes writes sessions are made over and over", "G10",
        f"{POOLS}::test_where_there_is_no_other_server_sessions_are_not_made_over_and_over",
        (store("turned", "return self.refuses_writes and not young", "return self.refuses_writes"),),
    ),
    Mutant(
        "a bulk begins on a session that takes no writes", "G10",
        f"{POOLS}::test_a_bulk_goes_on_to_the_server_that_takes_writes",
        (store("run", "                if is_last or not conn.has_turned:  # told with the reply to BEGIN", "                if True:"),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "whoever listens stays with a server that turned read-only", "G10",
        f"{POOLS}::test_who_listens_goes_on_to_the_server_that_takes_writes",
        (store("listen", "lost.is_set() or conn.is_stale or conn.has_turned", "lost.is_set() or conn.is_stale"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "an operator's verb begins on a session that takes no writes", "G10",
        f"{SERVER}::test_an_operators_verb_is_carried_out_where_writes_are_taken",
        (store("run", "                        if is_last or not conn.has_turned:\n", "                        if True:\n"),),
    ),
    Mutant(
        "a handler's write that the server refused is its failure", "G10",
        f"{HANDLERS}::test_a_write_of_the_handler_that_the_server_refuses_costs_no_attempt",
        (
            worker("transaction", "                self._check_turned(error)\n        finally:\n            self._give_back()", "        finally:\n            self._give_back()"),
            worker("transaction", "                await self._acheck_turned(error)\n", ""),
        ),
    ),
    Mutant(
        "a refusal that a library has wrapped is the handler's failure", "G10",
        f"{HANDLERS}::test_a_write_of_the_handler_that_the_server_refuses_costs_no_attempt",
        (store("turned", "any(isinstance(one, REFUSED) for one in _chain(error))", "isinstance(error, REFUSED)"),),
    ),
    Mutant(
        "a transaction that the handler itself made read-only is an outage", "G9",
        f"{HANDLERS}::test_a_transaction_that_the_handler_itself_made_read_only_fails",
        (worker("transaction", "            with named_errors():\n                turned = asks_read_only(self._conn)\n", "            turned = True\n"),),
    ),
    Mutant(
        "a commit of which nobody can tell costs an attempt", "G10",
        f"{HANDLERS}::test_a_commit_of_which_nobody_could_tell_in_time_costs_no_attempt",
        (worker("judge", "if hand.unknown:", "if False:"),),
    ),
)  # fmt: skip
