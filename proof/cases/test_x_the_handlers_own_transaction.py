"""Cases of our own: a handler misuses the connection that job.complete lends it."""

import asyncio
import os
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from faultline.errors import TransactionEnded, TransactionOpen
from faultline.job import Job
from faultline.store import calls
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import drain, execute, quick, rows

INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


@pytest.mark.parametrize("statement", ["commit", "rollback", "end", "abort", "close"])
@pytest.mark.parametrize("kind", ["async", "thread"])
def test_x10_a_handler_that_ends_the_transaction_itself_does_not_succeed(database, store, statement, kind):
    """A success without its rows, after a raw ROLLBACK, would be work that was never done."""
    raised: list[BaseException] = []

    async def ends(job: Job) -> None:
        try:
            async with job.complete() as conn:
                await conn.execute(INSERT, [job.id, job.token, "before"])
                await (conn.close() if statement == "close" else conn.execute(statement))
        except BaseException as error:
            raised.append(error)
            raise

    def ends_in_thread(job: Job) -> None:
        try:
            with job.complete() as conn:
                conn.execute(INSERT, [job.id, job.token, "before"])
                conn.close() if statement == "close" else conn.execute(statement.encode())
        except BaseException as error:
            raised.append(error)
            raise

    handler = ends if kind == "async" else ends_in_thread
    handler.__name__ = "ends"
    job = enqueue(store, task="ends", max_attempts=1)

    drain(database, handler)

    assert [type(error) for error in raised] == [TransactionEnded]
    assert state_of(store, job) == "dead"
    assert outcomes(store, job) == ["dead"]


@pytest.mark.parametrize("isolation", [None, IsolationLevel.REPEATABLE_READ])
def test_x11_a_block_inside_a_block_of_the_same_job_is_refused(database, store, isolation):
    """At REPEATABLE READ the inner fence would wait for the outer one, for as long as the job may run."""
    raised: list[BaseException] = []

    async def nests(job: Job) -> None:
        async with job.complete(isolation=isolation) as conn:
            await conn.execute(INSERT, [job.id, job.token, "outer"])
            try:
                async with job.complete(isolation=isolation) as inner:
                    await inner.execute(INSERT, [job.id, job.token, "inner"])
            except TransactionOpen as error:
                raised.append(error)

    job = enqueue(store, task="nests")

    drain(database, nests)

    assert len(raised) == 1
    assert effects(database) == ["outer"]
    assert outcomes(store, job) == ["succeeded"]


def test_x11_of_two_blocks_at_once_one_is_refused(database, store):
    seen: list[Any] = []

    async def write(job: Job, said: str) -> None:
        async with job.complete() as conn:
            await conn.execute(INSERT, [job.id, job.token, said])

    async def both(job: Job) -> None:
        seen.extend(await asyncio.gather(write(job, "one"), write(job, "two"), return_exceptions=True))

    job = enqueue(store, task="both")

    drain(database, both)

    assert sorted(type(each).__name__ for each in seen) in (
        ["NoneType", "TransactionOpen"], ["AlreadySettled", "NoneType"],
    )  # fmt: skip
    assert len(effects(database)) == 1
    assert outcomes(store, job) == ["succeeded"]


def test_x12_a_handler_that_returns_with_its_block_open_has_failed(database, store):
    """Fire and forget: its success must not be recorded before the rows, or without them."""
    tasks: list[asyncio.Task[None]] = []

    async def forgets(job: Job) -> None:
        opened = asyncio.Event()

        async def write() -> None:
            async with job.complete() as conn:
                await conn.execute(INSERT, [job.id, job.token, "late"])
                opened.set()
                await asyncio.sleep(0.5)

        tasks.append(asyncio.create_task(write()))
        await opened.wait()

    job = enqueue(store, task="forgets", max_attempts=1)

    drain(database, forgets)

    assert outcomes(store, job) == ["dead"]
    assert "still open" in store.run(calls.get(job)).error
    assert effects(database) == []


@pytest.mark.parametrize(
    "left",
    [
        "set search_path to pg_temp",
        "set statement_timeout to '1ms'",
        "set role to nobody_much",
        "select pg_advisory_lock(7)",
        "create temp table effects (job_id bigint, token bigint, said text)",
    ],
)
@pytest.mark.parametrize("kind", ["async", "thread"])
def test_x13_what_a_handler_leaves_in_its_session_the_next_one_does_not_find(database, store, left, kind):
    """The connection is lent again: another tenant's search_path would be a leak."""
    execute(
        database, "do $$ begin create role nobody_much; exception when duplicate_object then null; end $$"
    )
    execute(database, "grant all on schema faultline, public to nobody_much")
    execute(database, "grant execute on all functions in schema faultline to nobody_much")
    execute(database, "grant insert on effects to nobody_much")
    seen: list[Any] = []
    ask = (
        "select current_setting('search_path'), current_setting('statement_timeout'), current_user,"
        " (select count(*) from pg_locks where locktype = 'advisory' and objid = 7),"
        " to_regclass('pg_temp.effects')"
    )

    async def leaves(job: Job) -> None:
        async with job.complete() as conn:
            await conn.execute(left)

    async def looks(job: Job) -> None:
        async with job.complete() as conn:
            seen.append(await (await conn.execute(ask)).fetchone())

    def leaves_in_thread(job: Job) -> None:
        with job.complete() as conn:
            conn.execute(left.encode())

    def looks_in_thread(job: Job) -> None:
        with job.complete() as conn:
            seen.append(conn.execute(ask.encode()).fetchone())

    first, second = (leaves, looks) if kind == "async" else (leaves_in_thread, looks_in_thread)
    first.__name__, second.__name__ = "leaves", "looks"
    enqueue(store, task="leaves")
    job = enqueue(store, task="looks")

    drain(database, first, second, config=quick(jobs_max=1, threads_max=1))

    (expected,) = rows(database, ask)
    assert seen == [expected]
    assert outcomes(store, job) == ["succeeded"]


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_x14_a_constraint_that_fails_at_the_commit_leaves_neither_rows_nor_success(database, store, kind):
    execute(database, "create table parents (id bigint primary key)")
    execute(
        database,
        "create table kids (parent bigint references parents deferrable initially deferred)",
    )
    raised: list[BaseException] = []

    async def orphan(job: Job) -> None:
        try:
            async with job.complete() as conn:
                await conn.execute("insert into kids values (1)")
        except psycopg.Error as error:
            raised.append(error)
            raise

    def orphan_in_thread(job: Job) -> None:
        try:
            with job.complete() as conn:
                conn.execute("insert into kids values (1)")
        except psycopg.Error as error:
            raised.append(error)
            raise

    handler = orphan if kind == "async" else orphan_in_thread
    handler.__name__ = "orphan"
    job = enqueue(store, task="orphan", max_attempts=1)

    drain(database, handler)

    assert [type(error) for error in raised] == [psycopg.errors.ForeignKeyViolation]
    assert outcomes(store, job) == ["dead"]
    assert rows(database, "select count(*) from kids") == [(0,)]


def test_x15_a_forked_child_cannot_commit_for_its_parent(database, store, tmp_path):
    """P9: it has the parent's sockets; two processes speaking on one would garble both."""
    told = tmp_path / "told"

    def forks(job: Job) -> str:
        child = os.fork()
        if child == 0:
            try:
                with job.complete() as conn:
                    conn.execute(INSERT, [job.id, job.token, "child"])
                told.write_text("committed")
            except BaseException as error:
                told.write_text(type(error).__name__)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with job.complete(result="parent") as conn:
            conn.execute(INSERT, [job.id, job.token, "parent"])
        return ""

    job = enqueue(store, task="forks")

    drain(database, forks)

    assert told.read_text() == "FaultlineError"
    assert effects(database) == ["parent"]
    assert outcomes(store, job) == ["succeeded"]
