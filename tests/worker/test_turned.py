"""A server that turns read-only, and a commit with an unknown outcome: neither costs a job an attempt."""

import asyncio
from typing import Any

import pytest

from faultline.errors import OutcomeUnknown, ReadOnlyServer
from faultline.job import Job
from faultline.outcome import Failed, Snooze
from faultline.store import calls
from faultline.store.pool import Store
from faultline.worker.attempt import AttemptPhase
from faultline.worker.execution.outcomes import after_raise
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.transactions.transaction import WorkTransaction
from tests.promises.standby import a_primary
from tests.support import enqueue, outcomes, state_of
from tests.support_turning import Turning
from tests.worker import turning_app as shop
from tests.worker.conftest import TABLES
from tests.worker.harness import an_attempt, eventually, execute, quick, rows, short, working

PLAIN: dict[str, Any] = {"pooler": "transaction"}
TASKS = ["in_thread", "in_loop", "in_child", "in_child_loop"]


@pytest.fixture(scope="module")
def cluster():
    with a_primary() as server:
        yield server


@pytest.fixture
def turning(cluster, request, monkeypatch):
    """A server that takes writes, with a database of the test's own."""
    server = Turning(cluster, f"shop_{abs(hash(request.node.name))}")
    execute(server.dsn, ";".join(TABLES.format(name) for name in ("effects", "notes")))
    monkeypatch.setenv("FAULTLINE_DSN", server.dsn)
    yield server
    server.take_writes()


def wait_for_end(store, job):
    eventually(lambda: state_of(store, job) in ("succeeded", "dead"))


@pytest.mark.parametrize("then", ["turn", "wrap"])
@pytest.mark.parametrize("task", TASKS)
def test_a_write_of_the_handler_that_the_server_refuses_costs_no_attempt(turning, task, then):
    """Single-host: a new session finds the same server, which refuses the handler's own statement."""
    store = Store(turning.dsn)
    with working(turning.dsn, *shop.app.registry, config=quick(jobs_max=1)):
        wait_for_end(store, enqueue(store, task=task))
        job = enqueue(store, task=task, args=f'{{"then": "{then}"}}', max_attempts=1)
        wait_for_end(store, job)

    assert outcomes(store, job) == ["snoozed", "succeeded"]
    assert store.run(calls.get(job)).attempt == 1
    assert rows(turning.dsn, "select count(*) from effects where job_id = %s", job) == [(1,)]
    store.close()


@pytest.mark.parametrize("task", TASKS)
def test_a_transaction_that_the_handler_itself_made_read_only_fails(turning, task):
    """Given back again and again it would run without end."""
    store = Store(turning.dsn)
    job = enqueue(store, task=task, args='{"then": "forbid"}', max_attempts=1)
    with working(turning.dsn, *shop.app.registry, config=quick(jobs_max=1)):
        wait_for_end(store, job)

    assert outcomes(store, job) == ["dead"]
    assert "ReadOnlySqlTransaction" in store.run(calls.get(job)).error
    store.close()


@pytest.fixture
def when_commit_breaks(monkeypatch):
    """Have something done in the moment in which a commit is known to be unanswered."""

    def arrange(act):
        resolve, aresolve = WorkTransaction._resolve, WorkTransaction._aresolve

        def broken(self, error):
            act()
            return resolve(self, error)

        async def abroken(self, error):
            await asyncio.to_thread(act)
            return await aresolve(self, error)

        monkeypatch.setattr(WorkTransaction, "_resolve", broken)
        monkeypatch.setattr(WorkTransaction, "_aresolve", abroken)

    return arrange


@pytest.fixture(params=["async", "thread"])
def commits(request, proxy):
    """A handler whose first commit is cut on its way, and what it was told of it."""
    raised: list[BaseException] = []
    sql = "insert into effects (job_id, token, said) values (%s, %s, 'written')"

    async def in_loop(job: Job) -> None:
        if not raised:
            proxy.cut("COMMIT", "before")
        try:
            async with job.complete() as conn:
                await conn.execute(sql, [job.id, job.token])
        except OutcomeUnknown as error:
            raised.append(error)
            raise ValueError("the handler's own word for it") from error

    def in_thread(job: Job) -> None:
        if not raised:
            proxy.cut("COMMIT", "before")
        try:
            with job.complete() as conn:
                conn.execute(sql, [job.id, job.token])
        except OutcomeUnknown as error:
            raised.append(error)
            raise ValueError("the handler's own word for it") from error

    handler = in_loop if request.param == "async" else in_thread
    handler.__name__ = "commits"
    handler.raised = raised  # type: ignore[attr-defined]
    return handler


def test_a_commit_with_an_outcome_unknown_in_time_costs_no_attempt(
    database, store, proxy, commits, when_commit_breaks
):
    """The connection broke in the commit, and the database stayed away until the lease had ended."""
    when_commit_breaks(proxy.close_way)
    job = enqueue(store, task="commits", max_attempts=5)  # on a busy machine its lease may run out as well
    with working(proxy.dsn, commits, config=short(), **PLAIN):
        eventually(lambda: commits.raised)
        proxy.open_way()
        eventually(lambda: state_of(store, job) in ("succeeded", "dead"))

    assert state_of(store, job) == "succeeded"
    assert "failed" not in outcomes(store, job)
    assert rows(database, "select count(*) from effects") == [(1,)]


def test_what_a_handler_makes_of_an_unknown_commit_is_not_held_against_it():
    lease_table = LeaseTable.make(1)
    attempt = an_attempt(lease_table)
    unknown = OutcomeUnknown("the reply was lost")
    assert isinstance(
        after_raise(attempt, unknown), Failed
    )  # its own enqueue, which it may judge by its rules

    attempt.phase = AttemptPhase.UNKNOWN

    for error in (unknown, ValueError("its own word"), ReadOnlyServer("no")):
        assert isinstance(after_raise(attempt, error), Snooze)
    lease_table.close()


def test_no_text_blames_the_queue_for_what_a_failover_lost(
    database, store, proxy, commits, when_commit_breaks
):
    """As after a lossy failover: the job's row, and the claim on it, are not there any more."""
    job = enqueue(store, task="commits")
    when_commit_breaks(lambda: execute(database, "delete from faultline.active where id = %s", job))
    with working(proxy.dsn, commits, **PLAIN):
        (error,) = eventually(lambda: commits.raised)

    assert "a failover lost its claim" in str(error)
    assert outcomes(store, job) == []
