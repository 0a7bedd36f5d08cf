"""Mutants of the news that a job was cancelled: it comes at once, from every door, and only if it is true."""

from proof.mutants.mutant import Mutant, Patch, worker

SERVER = "tests/grpc/test_cancels.py"
REMOTE = "tests/remote/test_worker.py"
DIRECT = "tests/worker/test_cancels.py"
AT_ONCE = "test_a_cancelled_jobs_handler_is_stopped_long_before_the_next_beat"

MUTANTS = (
    Mutant(
        "a cancel over HTTP is not told to the sessions of its process", "G12",
        f"{SERVER}::test_a_cancel_over_http_reaches_the_session_of_its_worker",
        (Patch("server/process.py", "                context.cancelled = grpc.cancelled\n", "                pass\n"),),
    ),
    Mutant(
        "a replica does not hear what another has cancelled", "G12",
        f"{SERVER}::test_a_cancel_at_another_replica_reaches_it_by_the_database",
        (Patch("server/grpc/grpc_server.py", "            self.cancels.heard(jobs)\n", "            pass\n"),),
    ),
    Mutant(
        "a server passes on whatever it hears of cancelled jobs", "G12",
        f"{SERVER}::test_news_of_a_job_that_was_not_cancelled_is_not_passed_on",
        (Patch("server/grpc/sessions/cancel_notices.py", "if found is not None and found.state == JobState.CANCELLED:", "if True:"),),
    ),
    Mutant(
        "a worker over a server waits for its beat to hear of a cancelled job", "G12", f"{REMOTE}::{AT_ONCE}",
        (Patch("remote/replica_session.py", "self._heard(cancelled_message([notice.cancel.job_id]))", "pass"),),
    ),
    Mutant(
        "a worker on the database waits for its beat to hear of a cancelled job", "G12", f"{DIRECT}::{AT_ONCE}",
        (worker("worker", "            self._cancels.heard(jobs)\n", "            pass\n"),),
    ),
    Mutant(
        "a worker believes whatever it hears of cancelled jobs", "G12",
        f"{DIRECT}::test_news_of_a_job_that_was_not_cancelled_stops_no_handler",
        (worker("execution/cancellations", "why = gone.get((attempt.job_id, attempt.token))", 'why = "cancel"'),),
    ),
)  # fmt: skip
