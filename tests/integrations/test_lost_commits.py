"""The handler's own COMMIT breaks: the rows say what became of the job, not the error that it met."""

import logging

import psycopg
import pytest

from faultline.job import Job
from faultline.store import calls
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import drain, execute, rows

INSERT = "insert into effects (job_id, token, said) values (%s, %s, 'written')"
EFFECTS = "select count(*) from effects"


class ReplyLost(Exception):
    pass


@pytest.fixture
def committing(database):
    """A handler that completes its job in a transaction of its own; `at_the_end` commits it, or does not."""

    def make(at_the_end):
        def write(job: Job) -> None:
            with psycopg.connect(database) as conn:
                conn.execute(INSERT, [job.id, job.token])
                job.complete_in(conn, result="written")
                at_the_end(conn)

        return write

    return make


def test_a_commit_whose_reply_is_lost_is_a_success(database, store, committing, caplog):
    job = enqueue(store, task="write")

    def lose(conn):
        conn.commit()
        conn.close()
        raise ReplyLost("server closed the connection unexpectedly")

    with caplog.at_level(logging.WARNING, "faultline.worker"):
        drain(database, committing(lose))

    assert (rows(database, EFFECTS), outcomes(store, job)) == ([(1,)], ["succeeded"])
    assert store.run(calls.get(job)).result == "written"
    (entry,) = store.run(calls.history(job))
    assert "ReplyLost" in entry.error
    assert store.run(calls.refusals(job)) == []


def test_a_connection_that_breaks_before_the_commit_is_a_failure(database, store, committing):
    job = enqueue(store, task="write", max_attempts=1)

    def cut(conn):
        execute(database, "select pg_terminate_backend(%s)", conn.info.backend_pid)
        conn.commit()

    drain(database, committing(cut))

    assert (rows(database, EFFECTS), state_of(store, job)) == ([(0,)], "dead")


def test_a_lost_lease_at_a_lost_commit_is_neither(database, store, committing):
    """Cut before the commit, and taken over meanwhile: the newer attempt decides."""
    from tests.support import TAKE_OVER

    job = enqueue(store, task="write")

    def cut_and_lose(conn):
        execute(database, "select pg_terminate_backend(%s)", conn.info.backend_pid)
        execute(database, TAKE_OVER, job)
        conn.commit()

    drain(database, committing(cut_and_lose))

    assert (rows(database, EFFECTS), state_of(store, job)) == ([(0,)], "running")
