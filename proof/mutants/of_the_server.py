"""Mutants of the gRPC server: what stands between a worker without database credentials and the verbs."""

from proof.mutants.mutant import Mutant, Patch

KIT = "tests/grpc/test_conformance.py::test_the_server_keeps_the_protocol"
ACCESS = "tests/grpc/test_access.py"
ABUSE = "tests/grpc/test_s7_abuse.py"
UNDELIVERED = "tests/grpc/test_undelivered.py"


def serving(module: str, old: str, new: str) -> Patch:
    """A patch to a part of the gRPC server."""
    return Patch(f"server/grpc/{module}.py", old, new)


MUTANTS = (
    Mutant(
        "jobs claimed while a long poll's key is found revoked are kept", "G8",
        f"{UNDELIVERED}::test_jobs_claimed_while_a_long_poll_s_key_is_found_revoked_come_back_at_once",
        (Patch("server/auth/key_lifetime.py", "            dropped(doing.result())\n", "            pass\n"),),
    ),
    Mutant(
        "a caller that hangs up while the rest goes back keeps the first jobs", "G8",
        f"{UNDELIVERED}::test_a_caller_that_hangs_up_while_the_rest_goes_back_leaves_no_job_behind",
        (serving("workers_service", "                self._undelivered(first.assignments)\n", ""),),
    ),
    Mutant(
        "the server fills in the claim that it remembers of a job", "G4", KIT,
        (
            serving("messages", "def leases(", "CLAIMS: dict[int, bytes] = {}\n\n\ndef leases("),
            serving("sessions/job_messages", "import milliseconds\n", "import CLAIMS, milliseconds\n"),
            serving("sessions/job_messages", "        job.id = id\n", "        job.id = id\n        CLAIMS[id] = claim\n"),
            serving("messages", "claims[proof.claim], 0.0, 0.0)", "claims[CLAIMS.get(proof.job_id, proof.claim)], 0.0, 0.0)"),
            serving("sessions/result_settler", "import ClaimIds, ", "import CLAIMS, ClaimIds, "),
            serving("sessions/result_settler", "claims[result.claim]", "claims[CLAIMS.get(result.job_id, result.claim)]"),
        ),
    ),
    Mutant(
        "connections that say nothing are taken without number", "G13",
        f"{ABUSE}::test_s7_connections_that_say_nothing_are_bounded_and_closed",
        (serving("grpc_config", '            ("grpc.max_allowed_incoming_connections", self.connections_max),\n', ""),),
    ),
    Mutant(
        "a refused result is answered as accepted", "G4", KIT,
        (serving("sessions/result_settler", "        accepted = len(named) - len(rest)\n",
                 "        rest = [item for item in rest if item.why != worker_pb2.WHY_REFUSED]\n"
                 "        accepted = len(named) - len(rest)\n"),),
    ),
    Mutant(
        "results go to the database unchecked", "G13",
        "tests/grpc/test_jobs.py::test_i12_a_result_that_cannot_be_kept_harms_no_other",
        (serving("sessions/result_settler", "for item, result in given if result and", "for item, result in given if False and"),),
    ),
    Mutant(
        "a claim brings what it asked for, whatever it weighs", "G13",
        "tests/sql/test_claim.py::test_a_claim_is_bounded_by_bytes_and_leaves_the_rest_free",
        (Patch("sql/functions/leases/claim.sql", "if together > claim.bytes then", "if false then"),),
    ),
    Mutant(
        "one key takes all the room for jobs on their way", "G13",
        "tests/grpc/test_payload_budget.py::test_a_claim_waits_for_room_and_one_key_has_a_part_of_it",
        (Patch("server/throttling/payload_budget.py", "and self._held[whose] + CLAIM_BYTES_MAX <= self._bytes_per_key", "and True"),),
    ),
    Mutant(
        "a worker's number serves any key", "G15",
        f"{ACCESS}::test_s2_a_key_speaks_for_its_own_workers_only",
        (serving("sessions/worker_numbers", "return worker if self._known[worker] == caller.name else None", "return worker"),),
    ),
    Mutant(
        "a refusal is recorded of what was never a lease", "G15",
        "tests/sql/test_refusals.py::test_only_leases_that_were_given_are_recorded",
        (Patch("sql/functions/leases/note_refusals.sql", "    where exists (\n        select from faultline.ledger",
               "    where true or exists (\n        select from faultline.ledger"),),
    ),
    Mutant(
        "a stale single result is answered OK in its unary form", "G4", KIT,
        (serving("workers_service", "if len(request.results.items) == 1 and settled.rest and", "if False and"),),
    ),
    Mutant(
        "a beat is answered held, whatever the database says", "G4", KIT,
        (serving("sessions/worker_service", "answers.get((named_lease.job_id, named_lease.token), worker_pb2.PULSE_LOST)",
                 "worker_pb2.PULSE_HELD"),),
    ),
    Mutant(
        "an unknown outcome is guessed, not read", "G7", KIT,
        (serving("sessions/worker_service", 'ENDS[await self.store.run(outcome(lease)) if lease.job_id in theirs else "gone"]',
                 'ENDS["succeeded"]'),),
    ),
    Mutant(
        "the wait is counted into the lease", "G2", KIT,
        (serving("sessions/assigner", "waited_ms = int((time.monotonic() - request.arrived) * 1000 * DRIFT)",
                 "waited_ms = int(request.wait * 1000)"),),
    ),
    Mutant(
        "jobs of a stream that is gone are left to their leases", "G8",
        f"{UNDELIVERED}::test_a_job_claimed_for_a_stream_that_is_gone_comes_back_at_once",
        (serving("sessions/session_writer", "        if going.jobs:\n", "        if False:\n"),),
    ),
    Mutant(
        "a key's queues are not asked for when a worker says hello", "G15",
        f"{ACCESS}::test_s2_a_key_of_one_queue_gets_no_job_of_another",
        (serving("sessions/worker_service", "        if closed:\n", "        if False:\n"),),
    ),
    Mutant(
        "a refusal tells a key of one queue about the jobs of another", "G15",
        f"{ACCESS}::test_s2_a_key_of_one_queue_learns_nothing_of_anothers_leases",
        (serving("sessions/queue_scope", "        if allowed is None:\n", "        if True:\n"),),
    ),
    Mutant(
        "a session outlives its key", "G15", f"{ACCESS}::test_s2_a_session_ends_when_its_key_is_revoked",
        (serving("sessions/worker_session", "            caller = await self.guard.known(self.context)\n",
                 "            caller = self.rights.caller\n"),),
    ),
    Mutant(
        "a client without a key is taken for one on this machine", "G15",
        f"{ACCESS}::test_s2_behind_a_proxy_no_client_counts_as_on_this_machine",
        (Patch("server/auth/authenticator.py", "trust_loopback and not behind_proxy", "True"),),
    ),
    Mutant(
        "a job is given out with the token of another of its claim", "G4",
        "tests/grpc/test_job_messages.py::test_each_job_has_its_own_facts_and_those_it_shares",
        (serving("sessions/job_messages", "        alike = (token, ", "        token = rows[0][1]\n        alike = (token, "),),
    ),
    Mutant(
        "a token is enough to have a refusal recorded", "G15",
        "tests/grpc/test_access.py::test_s2_a_refusal_is_recorded_of_a_lease_by_its_claim_and_not_by_its_token",
        (
            Patch("sql/functions/leases/note_refusals.sql", "entry.token = late.token and entry.claim = any (late.claims))", "entry.token = late.token)"),
            Patch("sql/functions/leases/note_refusals.sql", "job.token = late.token and job.claim = any (late.claims))", "job.token = late.token)"),
        ),
    ),
    Mutant(
        "connections are looked at once a second, however many come", "G13",
        f"{ABUSE}::test_s7_connections_are_looked_at_sooner_while_many_come",
        (serving("guard/connection_limits", " and _files() - before < grown:", ":"),),
        red_by=("TimeoutError",),
    ),
)  # fmt: skip
