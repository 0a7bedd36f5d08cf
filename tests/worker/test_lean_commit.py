"""The completing call and COMMIT share a message, and the session is made as new behind them."""

import asyncio
import contextlib
import time
from typing import Any

import psycopg
import pytest

from faultline.job import Job
from faultline.store import calls
from tests.support import enqueue, outcomes
from tests.worker.harness import drain, eventually, execute, quick, rows

INSERT = "insert into effects (job_id, token, said) values (%s, %s, 'written')"
HOLD = "select from faultline.active where id = %s for update"
LOCK = "select pg_advisory_lock(8)"
LOCKS = "select count(*) from pg_locks where locktype = 'advisory' and objid = 8"


def given(job: Job, statement: str) -> list[int] | None:
    return [job.id, job.token] if "%s" in statement else None


@pytest.fixture(params=["async", "thread"])
def block(request: pytest.FixtureRequest) -> Any:
    """A handler that runs statements in its block, and something behind it."""

    def make(*statements: str, name: str = "write", after: Any = lambda job: None) -> Any:
        async def in_loop(job: Job) -> None:
            async with job.complete(result="done") as conn:
                for statement in statements:
                    await conn.execute(statement, given(job, statement), prepare=False)
            await asyncio.to_thread(after, job)

        def in_thread(job: Job) -> None:
            with job.complete(result="done") as conn:
                for statement in statements:
                    conn.execute(statement, given(job, statement), prepare=False)
            after(job)

        handler = in_loop if request.param == "async" else in_thread
        handler.__name__ = name
        return handler

    return make


ONE = quick(jobs_max=1, threads_max=1)


def test_a_lock_of_the_session_is_free_behind_the_block_and_not_at_its_next_use(database, store, block):
    """No other block follows: what frees it is sent with the block's end."""
    freed: list[bool] = []

    def look(_: Job) -> None:
        eventually(lambda: rows(database, LOCKS) == [(0,)])
        freed.append(True)

    job = enqueue(store, task="write")
    drain(database, block(LOCK, after=look), config=ONE)

    assert freed == [True]
    assert outcomes(store, job) == ["succeeded"]


def test_a_block_without_a_statement_succeeds(database, store, block):
    jobs = [enqueue(store, task="write") for _ in range(3)]
    drain(database, block(), config=ONE)
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 3
    assert store.run(calls.get(jobs[0])).result == "done"


def test_a_first_statement_that_fails_leaves_the_session_fit_for_the_next_block(database, store, block):
    failing = enqueue(store, task="fails", max_attempts=1)
    job = enqueue(store, task="write")
    drain(database, block("select 1 / 0", name="fails"), block(INSERT), config=ONE)
    assert outcomes(store, failing) == ["dead"]
    assert outcomes(store, job) == ["succeeded"]
    assert rows(database, "select job_id from effects") == [(job,)]


def test_an_error_at_the_commit_leaves_neither_rows_nor_success_and_the_next_block_both(
    database, store, block
):
    execute(database, "create table parent (id bigint primary key)")
    execute(
        database,
        "create table child (id bigint references parent deferrable initially deferred, token bigint)",
    )
    failing = enqueue(store, task="fails", max_attempts=1)
    job = enqueue(store, task="write")
    drain(
        database,
        block("insert into child (id, token) values (%s, %s)", name="fails"),
        block(INSERT),
        config=ONE,
    )
    assert outcomes(store, failing) == ["dead"]
    assert "ForeignKeyViolation" in (store.run(calls.get(failing)).error or "")
    assert rows(database, "select count(*) from child") == [(0,)]
    assert outcomes(store, job) == ["succeeded"]


def test_a_session_that_forgot_its_statements_in_the_block_still_completes(database, store, block):
    """After a rolled back savepoint the driver has it forget all of them: the completing call has no name."""
    jobs = [enqueue(store, task="write") for _ in range(8)]
    drain(database, block(INSERT, "deallocate all"), config=ONE)
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 8


def test_a_commit_that_the_handler_itself_cuts_short_is_answered_by_the_rows(database, store):
    """Its own timeout ends the wait: the connection is closed, and the attempt settles as the rows allow."""
    held = psycopg.connect(database)
    told: list[BaseException] = []

    async def write(job: Job) -> None:
        await asyncio.to_thread(
            held.execute, "select from faultline.active where id = %s for update", [job.id]
        )
        try:
            async with asyncio.timeout(0.5), job.complete() as conn:
                await conn.execute(INSERT, [job.id, job.token])
        except TimeoutError as error:
            told.append(error)
            raise
        finally:
            await asyncio.to_thread(held.rollback)

    job = enqueue(store, task="write", max_attempts=1)
    with contextlib.closing(held):
        drain(database, write, config=ONE)

    assert len(told) == 1
    assert outcomes(store, job) == ["dead"]
    assert rows(database, "select count(*) from effects") == [(0,)]


def test_a_session_killed_behind_its_commit_costs_the_next_block_nothing(database, store, block):
    def kill(_: Job) -> None:
        execute(
            database,
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
            " and query like 'reset session authorization%%'",
        )
        time.sleep(0.1)

    jobs = [enqueue(store, task="write", max_attempts=1) for _ in range(3)]
    drain(database, block(INSERT, after=kill), config=ONE)

    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 3
