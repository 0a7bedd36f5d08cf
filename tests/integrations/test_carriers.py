"""One suite for every carrier: the user's own connection, with real libraries and a real server."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

import asyncpg
import pytest
import sqlalchemy as sa

from faultline import Faultline
from faultline.errors import InSavepoint, LeaseLost, NotInTransaction, TransactionConflict
from faultline.job import Job
from faultline.store import calls
from tests.integrations.carriers import (
    CARRIERS,
    AsyncCore,
    AsyncOrm,
    Asyncpg,
    CoreConnection,
    OrmSession,
    Psycopg,
    Ways,
    done,
    driven,
    entered,
    url,
)
from tests.support import TAKE_OVER, enqueue, outcomes, state_of
from tests.worker.harness import drain, execute, rows

INSERT: Final = "insert into effects (job_id, token, said) values ({}, {}, 'written')"


def effects(database: str) -> int:
    ((count,),) = rows(database, "select count(*) from effects")
    return int(count)


@pytest.fixture(params=CARRIERS, ids=lambda kind: kind.__name__)
def ways(request, database) -> Iterator[Ways]:
    """One library's way to open a connection, to begin, to write, to make a savepoint and to commit."""
    ways = request.param(database)
    yield ways
    ways.close()


def write(ways: Ways, job: Job, tx: Any) -> Any:
    return ways.execute(tx, INSERT.format(job.id, job.token))


def run(database: str, ways: Ways, act: Callable[..., Any], *, name: str = "write") -> None:
    """Run one job whose handler does `act(job)`: in the loop, or for a plain library in a thread."""

    async def handler(job: Job) -> Any:
        return await act(job)

    def plain(job: Job) -> Any:
        return driven(act(job))

    chosen = handler if ways.is_async else plain
    chosen.__name__ = name
    drain(database, chosen)


def completing(ways: Ways, *, then: Callable[[Any], Any] | None = None, result: Any = "done", **how: Any):
    """Write a row and complete the job in one transaction of the library's own."""

    async def act(job: Job) -> Any:
        async with entered(ways.begin()) as tx:
            await done(write(ways, job, tx))
            await done(job.complete_in(tx, result=result, **how))
            if then is not None:
                await then(tx)

    return act


def test_rows_and_success_commit_together(database, store, ways):
    job = enqueue(store, task="write")

    run(database, ways, completing(ways))

    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])
    assert store.run(calls.get(job)).result == "done"


def test_what_rolls_back_is_not_completed_and_fails(database, store, ways, caplog):
    """The handler swallows its own error and returns: the rows tell that nothing was committed."""
    job = enqueue(store, task="write", max_attempts=1)

    class Mine(Exception):
        pass

    async def fail(tx):
        raise Mine

    async def act(job):
        with contextlib.suppress(Mine):
            await completing(ways, then=fail)(job)

    run(database, ways, act)

    assert (effects(database), outcomes(store, job)) == (0, ["dead"])
    assert "NotCommitted" in store.run(calls.get(job)).error


def test_a_plain_session_in_an_async_handler_is_refused(database, store):
    """It would block the loop, and every job on it."""
    job = enqueue(store, task="write", max_attempts=1)
    plain = OrmSession(database)

    async def write(job: Job) -> None:
        with plain.begin() as session:
            job.complete_in(session)

    drain(database, write)
    plain.close()

    assert (outcomes(store, job), state_of(store, job)) == (["dead"], "dead")
    assert "SyncInAsync: job.complete_in() on a plain connection" in store.run(calls.get(job)).error


def test_a_session_lent_by_run_sync_blocks_no_loop(database, store):
    job = enqueue(store, task="write")
    ways = AsyncOrm(database)

    async def write(job: Job) -> None:
        async with entered(ways.begin()) as session:
            await session.run_sync(job.complete_in)

    drain(database, write)
    ways.close()

    assert outcomes(store, job) == ["succeeded"]


def lose(database: str, job: Job) -> None:
    execute(database, TAKE_OVER, job.id)


def test_a_lost_lease_rolls_back_and_is_refused(database, store, ways):
    job = enqueue(store, task="write")
    raised = []

    async def act(job):
        lose(database, job)
        try:
            await completing(ways)(job)
        except LeaseLost as lost:
            raised.append(lost.reason)
            raise

    run(database, ways, act)

    assert raised == ["token_mismatch"]
    assert (effects(database), state_of(store, job)) == (0, "running")
    assert [refusal.reason for refusal in store.run(calls.refusals(job))] == ["token_mismatch"]


def test_a_swallowed_refusal_writes_nothing_and_is_recorded(database, store, ways):
    job = enqueue(store, task="write")

    async def act(job):
        lose(database, job)
        with contextlib.suppress(Exception):
            async with entered(ways.begin()) as tx:
                await done(write(ways, job, tx))
                with contextlib.suppress(LeaseLost):
                    await done(job.complete_in(tx))
        return "looks fine"

    run(database, ways, act)

    assert (effects(database), state_of(store, job)) == (0, "running")
    assert [refusal.reason for refusal in store.run(calls.refusals(job))] == ["token_mismatch"]


def test_a_savepoint_is_refused_by_name(database, store, ways):
    job = enqueue(store, task="write", max_attempts=1)
    raised = []

    async def act(job):
        async with entered(ways.begin()) as tx:
            try:
                async with entered(ways.savepoint(tx)):
                    await done(job.complete_in(tx))
            except InSavepoint as error:
                raised.append(error)
        raise ValueError("on purpose")

    with contextlib.suppress(Exception):
        run(database, ways, act)

    assert len(raised) == 1
    assert outcomes(store, job) == ["dead"]


def test_a_savepoint_may_be_allowed(database, store, ways):
    job = enqueue(store, task="write")

    async def act(job):
        async with entered(ways.begin()) as tx, entered(ways.savepoint(tx)):
            await done(write(ways, job, tx))
            await done(job.complete_in(tx, savepoint=True))

    run(database, ways, act)

    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])


def test_after_a_released_savepoint_it_is_not_refused(database, store, ways):
    job = enqueue(store, task="write")

    async def act(job):
        async with entered(ways.begin()) as tx:
            async with entered(ways.savepoint(tx)):
                await done(write(ways, job, tx))
            await done(job.complete_in(tx))

    run(database, ways, act)

    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])


def test_a_failure_and_its_rows_commit_together(database, store, ways):
    job = enqueue(store, task="write", max_attempts=2)

    async def act(job):
        async with entered(ways.begin()) as tx:
            await done(write(ways, job, tx))
            await done(job.fail_in(tx, ValueError("declined"), timedelta(hours=1)))

    run(database, ways, act)

    (entry,) = store.run(calls.history(job))
    assert (effects(database), entry.outcome, entry.error.partition("\n")[0]) == (
        1, "failed", "ValueError: declined",
    )  # fmt: skip


def test_a_snooze_and_its_rows_commit_together(database, store, ways):
    job = enqueue(store, task="write")

    async def act(job):
        async with entered(ways.begin()) as tx:
            await done(write(ways, job, tx))
            await done(job.snooze_in(tx, timedelta(hours=1), "not yet"))

    run(database, ways, act)

    (entry,) = store.run(calls.history(job))
    assert (effects(database), entry.outcome, entry.error) == (1, "snoozed", "not yet")


def test_without_a_transaction_nothing_is_written(database, store, ways):
    job = enqueue(store, task="write", max_attempts=1)

    async def act(job):
        async with entered(ways.autocommit()) as conn:
            with pytest.raises(NotInTransaction):
                await done(job.complete_in(conn))
        raise ValueError("on purpose")

    run(database, ways, act)

    assert "ValueError: on purpose" in store.run(calls.get(job)).error


@pytest.mark.parametrize("kind", [Asyncpg, AsyncCore, AsyncOrm])
def test_after_a_commit_sent_as_sql_there_is_no_transaction_to_complete_in(database, store, kind):
    """Over asyncpg each later statement commits by itself; the other drivers begin anew."""
    ways = kind(database)
    job = enqueue(store, task="write", max_attempts=1)

    async def act(job):
        async with entered(ways.begin()) as tx:
            await done(ways.execute(tx, "commit"))
            await done(job.complete_in(tx))

    run(database, ways, act)

    assert outcomes(store, job) == ["dead"]
    assert "NotInTransaction" in store.run(calls.get(job)).error


def test_a_heartbeat_makes_a_snapshot_conflict_and_never_a_success(database, store, ways):
    job = enqueue(store, task="write", max_attempts=1)
    raised = []
    beat = "update faultline.active set lease_until = lease_until + interval '1 second' where id = %s"

    async def act(job):
        try:
            async with entered(ways.begin("REPEATABLE READ")) as tx:
                await done(write(ways, job, tx))
                execute(database, beat, job.id)
                await done(job.complete_in(tx))
        except TransactionConflict as error:
            raised.append(error)
            raise

    run(database, ways, act)

    assert len(raised) == 1
    assert (effects(database), outcomes(store, job)) == (0, ["dead"])


def test_a_job_is_enqueued_with_the_users_commit(database, store, ways):
    app = Faultline(database)

    @app.task
    def greet(name: str, at: dict[str, int]) -> None: ...

    form = "a" if ways.is_async else ""
    later: Any = greet.using(delay=timedelta(minutes=5))

    async def act() -> tuple[int, int, list[int]]:
        async with entered(ways.begin()) as tx:
            kept = (await done(getattr(greet, f"{form}enqueue_in")(tx, "Ada", {"ok": 1}))).id
            many = await done(getattr(greet, f"{form}enqueue_many_in")(tx, [greet.new("Bob", {"ok": 2})]))
        with contextlib.suppress(ZeroDivisionError):
            async with entered(ways.begin()) as tx:
                lost = (await done(getattr(later, f"{form}enqueue_in")(tx, "Eve", {}))).id
                raise ZeroDivisionError
        if ways.is_async:
            await ways.aclose()
            await app.aclose()
        return kept, lost, many

    kept, lost, many = asyncio.run(act()) if ways.is_async else driven(act())
    app.close()

    assert store.run(calls.get(kept)).args == {"name": "Ada", "at": {"ok": 1}}
    assert store.run(calls.get(many[0])).args == {"name": "Bob", "at": {"ok": 2}}
    assert store.run(calls.get(lost)) is None


def test_an_error_behind_the_commit_stands_beside_the_success(database, store, ways, caplog):
    job = enqueue(store, task="write")

    async def act(job):
        await completing(ways)(job)
        raise ValueError("too late")

    with caplog.at_level(logging.WARNING, "faultline.worker"):
        run(database, ways, act)

    (entry,) = store.run(calls.history(job))
    assert (entry.outcome, entry.error.partition("\n")[0]) == ("succeeded", "ValueError: too late")
    assert any("its success stands" in record.getMessage() for record in caplog.records)


def test_a_second_completion_of_a_committed_job_is_told(database, store, ways):
    job = enqueue(store, task="write")
    told = []

    async def act(job):
        await completing(ways)(job)
        try:
            await completing(ways)(job)
        except Exception as error:
            told.append(type(error).__name__)

    run(database, ways, act)

    assert told == ["AlreadySettled"]
    assert (effects(database), outcomes(store, job), store.run(calls.refusals(job))) == (1, ["succeeded"], [])


def test_a_success_that_is_not_kept_is_a_success(database, store, ways, caplog):
    store.run(calls.set_retention("default", "nothing"))
    job = enqueue(store, task="write")

    with caplog.at_level(logging.ERROR, "faultline.worker"):
        run(database, ways, completing(ways))

    assert (effects(database), store.run(calls.get(job)), caplog.records) == (1, None, [])


@pytest.mark.parametrize("library", ["asyncpg", "sqlalchemy"])
def test_a_pool_that_takes_back_an_open_transaction_rolls_back_and_that_is_told(database, store, library):
    job = enqueue(store, task="write", max_attempts=1)
    insert = INSERT.format(0, 0)

    async def with_asyncpg(job: Job) -> None:
        ways = Asyncpg(database)
        async with asyncpg.create_pool(**ways._parts, min_size=1, max_size=1) as pool, pool.acquire() as conn:
            await conn.transaction().start()
            await conn.execute(insert)
            await job.complete_in(conn)

    def with_sqlalchemy(job: Job) -> None:
        engine = sa.create_engine(url(database, "psycopg"), pool_size=1)
        with engine.connect() as conn:
            conn.execute(sa.text(insert))
            job.complete_in(conn)
        engine.dispose()

    handler = with_asyncpg if library == "asyncpg" else with_sqlalchemy
    handler.__name__ = "write"
    drain(database, handler)

    assert (effects(database), outcomes(store, job)) == (0, ["dead"])
    assert "NotCommitted" in store.run(calls.get(job)).error


@pytest.mark.parametrize("kind", [Psycopg, CoreConnection, OrmSession])
def test_a_transaction_that_is_left_open_is_told_and_may_still_commit(database, store, kind, caplog):
    """Of a library whose connections are not bound to a thread or a loop that has ended."""
    ways = kind(database)
    job = enqueue(store, task="write")
    left = []

    def act(job):
        block = ways.begin()
        tx = block.__enter__()
        left.append(block)
        write(ways, job, tx)
        job.complete_in(tx)

    with caplog.at_level(logging.ERROR, "faultline.worker"):
        run(database, ways, act)

    assert any("left the transaction" in record.getMessage() for record in caplog.records)
    ways.leave(left[0])
    ways.close()
    assert (effects(database), outcomes(store, job)) == (1, ["succeeded"])
