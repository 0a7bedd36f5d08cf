"""Mutants of what is done about a server that turned read-only, and about a commit whose outcome is unknown."""

from proof.mutants.mutant import Mutant, Patch, worker

POOLS = "tests/store/test_turned.py"
HANDLERS = "tests/worker/test_turned.py"
SERVER = "tests/http/test_turned.py"


def store(module: str, old: str, new: str) -> Patch:
    return Patch(f"store/{module}.py", old, new)


LENT = store(
    "driver/connect", "    if conn.is_stale or left.is_after(conn):\n        conn.close()",
    "    if conn.is_stale:\n        conn.close()",
)  # fmt: skip
LENT_IN_THE_LOOP = store(
    "driver/connect", "    if conn.is_stale or left.is_after(conn):\n        await conn.close()",
    "    if conn.is_stale:\n        await conn.close()",
)  # fmt: skip

MUTANTS = (
    Mutant(
        "a call that a server turned read-only refused is not tried again", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store(
            "pool/plain_store", "            try:\n                return self._run(POOL_WAIT_SECONDS, call, hint)\n            except CannotConnect as away:",
            "            try:\n                raise refused\n            except CannotConnect as away:",
        ),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "an awaited call that a server turned read-only refused is not tried again", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store(
            "pool/async_store", "            try:\n                return await self._run(POOL_WAIT_SECONDS, call, hint)\n            except",
            "            try:\n                raise refused\n            except",
        ),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "sessions of a server that turned read-only are lent again", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store("pool/plain_pool", "            pool.drain()  # the other connections belong to the same server\n", "            pass\n"), LENT),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "sessions of a server that turned read-only are lent again in the loop", "G10",
        f"{POOLS}::test_a_call_goes_on_to_the_server_that_takes_writes",
        (store("pool/async_pool", "                await pool.drain()\n", "                pass\n"), LENT_IN_THE_LOOP),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "a session that was being made when its server turned read-only is lent", "G10",
        f"{POOLS}::test_a_session_that_was_being_made_when_its_server_turned_is_not_used",
        (LENT,),
    ),
    Mutant(
        "a session that was being made when its server turned read-only is lent in the loop", "G10",
        f"{POOLS}::test_a_session_that_was_being_made_when_its_server_turned_is_not_used",
        (LENT_IN_THE_LOOP,),
    ),
    Mutant(
        "a client that only reads stays with a server that turned read-only", "G10",
        f"{POOLS}::test_a_client_that_only_reads_does_not_go_on_reading_old_rows",
        (store("servers/read_only", "        if self.has_turned:\n            return True\n", ""),),
    ),
    Mutant(
        "where no server takes writes sessions are made over and over", "G10",
        f"{POOLS}::test_where_there_is_no_other_server_sessions_are_not_made_over_and_over",
        (store("servers/read_only", "return not (self._began_read_only and monotonic() - self.made_at < YOUNG_SECONDS)", "return True"),),
    ),
    Mutant(
        "a bulk begins on a session that takes no writes", "G10",
        f"{POOLS}::test_a_bulk_goes_on_to_the_server_that_takes_writes",
        (store("pool/plain_pool", "                if is_last or not conn.has_turned:  # known from the reply to BEGIN", "                if True:"),),
        red_by=("ReadOnlyServer",),
    ),
    Mutant(
        "a client that listens stays with a server that turned read-only", "G10",
        f"{POOLS}::test_who_listens_goes_on_to_the_server_that_takes_writes",
        (store("driver/listen", "lost.is_set() or conn.is_stale or conn.has_turned", "lost.is_set() or conn.is_stale"),),
        red_by=("TimeoutError",),
    ),
    Mutant(
        "an operator's verb begins on a session that takes no writes", "G10",
        f"{SERVER}::test_an_operators_verb_is_carried_out_where_writes_are_taken",
        (store("pool/async_pool", "                        if is_last or not conn.has_turned:\n", "                        if True:\n"),),
    ),
    Mutant(
        "a handler's write that the server refused is its failure", "G10",
        f"{HANDLERS}::test_a_write_of_the_handler_that_the_server_refuses_costs_no_attempt",
        (
            worker("transactions/transaction", "                self._check_turned(error)\n        finally:\n            self._give_back()", "        finally:\n            self._give_back()"),
            worker("transactions/transaction", "                await self._acheck_turned(error)\n", ""),
        ),
    ),
    Mutant(
        "a refusal that a library has wrapped is the handler's failure", "G10",
        f"{HANDLERS}::test_a_write_of_the_handler_that_the_server_refuses_costs_no_attempt",
        (store("servers/read_only", "any(isinstance(one, REFUSED) for one in _chain(error))", "isinstance(error, REFUSED)"),),
    ),
    Mutant(
        "a transaction that the handler itself made read-only is an outage", "G9",
        f"{HANDLERS}::test_a_transaction_that_the_handler_itself_made_read_only_fails",
        (worker("transactions/transaction", "            with named_errors():\n                turned = asks_read_only(self._conn)\n", "            turned = True\n"),),
    ),
    Mutant(
        "a commit with an unknown outcome costs an attempt", "G10",
        f"{HANDLERS}::test_a_commit_with_an_outcome_unknown_in_time_costs_no_attempt",
        (worker("execution/outcomes", "if attempt.phase is AttemptPhase.UNKNOWN:", "if False:"),),
    ),
    Mutant(
        "a connection is kept beside the pool soon after its server turned read-only", "G10",
        f"{POOLS}::test_a_session_that_was_being_made_when_its_server_turned_is_not_used",
        (store("pool/async_pool", "            or self._left.is_recent\n", ""),),
    ),
    Mutant(
        "a connection is kept for the next caller while another waits in the pool", "G10",
        "tests/store/test_spare.py::test_a_caller_that_waits_in_the_pool_gets_the_connection",
        (store("pool/async_pool", "            or self._being_reset.borrowers\n            or pool", "            or pool"),),
    ),
)  # fmt: skip
