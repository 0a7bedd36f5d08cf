"""job.complete: the handler's rows, the success and the ledger entry, together or not at all."""

import asyncio
import contextlib
import logging
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.rows import dict_row

from faultline.errors import AlreadySettled, FaultlineError, LeaseLost, SyncInAsync, TransactionEnded
from faultline.job import Job
from faultline.outcome import Cancel, Dead, Snooze
from faultline.store import calls
from tests.support import TAKE_OVER, enqueue, new_job, outcomes, state_of
from tests.worker.harness import (
    InProcess,
    attempt_of,
    drain,
    eventually,
    execute,
    quick,
    rows,
    short,
    working,
)

COMMITTING = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


def steal(dsn: str, job_id: int) -> None:
    """What a reap and another worker's claim leave behind: a higher token, another claim."""
    execute(dsn, TAKE_OVER, job_id)


@pytest.fixture(params=["async", "thread"])
def writing(request: pytest.FixtureRequest) -> Any:
    """Makes a handler, async or plain, that writes an effect and does something before the block's end."""

    def make(
        before_the_end=lambda job, conn: None,
        result="done",
        returns=None,
        after=lambda job: None,
        isolation=None,
    ):
        async def write(job: Job) -> Any:
            async with job.complete(result=result, isolation=isolation) as conn:
                await conn.execute(INSERT, [job.id, job.token, "written"])
                await asyncio.to_thread(before_the_end, job, conn)
            after(job)
            return returns

        def write_in_thread(job: Job) -> Any:
            with job.complete(result=result, isolation=isolation) as conn:
                conn.execute(INSERT, [job.id, job.token, "written"])
                before_the_end(job, conn)
            after(job)
            return returns

        handler = write if request.param == "async" else write_in_thread
        handler.__name__ = "write"
        return handler

    return make


def test_rows_success_and_ledger_appear_together(database, store, writing):
    job = enqueue(store, task="write")
    seen: list[Any] = []

    def look(running: Job, _: Any) -> None:
        seen.append((effects(database), state_of(store, running.id), outcomes(store, running.id)))

    drain(database, writing(look))

    assert seen == [([], "running", [])]
    assert effects(database) == ["written"]
    assert store.run(calls.get(job)).result == "done"
    assert outcomes(store, job) == ["succeeded"]
    assert rows(database, "select count(distinct xmin::text) from (select xmin from effects union all"
                " select xmin from faultline.ledger) as written") == [(1,)]  # fmt: skip


def test_an_exception_in_the_block_rolls_everything_back(database, store, writing):
    job = enqueue(store, task="write")

    def fail(*_: Any) -> None:
        raise ValueError("after the insert")

    drain(database, writing(fail))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]


def test_a_lost_lease_rolls_everything_back_and_is_recorded(database, store, writing, caplog):
    caplog.set_level(logging.WARNING)
    job = enqueue(store, task="write")

    drain(database, writing(lambda running, _: steal(database, running.id)))

    assert effects(database) == []
    assert state_of(store, job) == "running"
    (refusal,) = store.run(calls.refusals(job))
    assert refusal.reason == "token_mismatch"
    assert (refusal.token, refusal.current_token) == (1, 2)
    (event,) = [record for record in caplog.records if getattr(record, "event", "") == "stale_write_blocked"]
    assert (event.facts["stale_token"], event.facts["current_token"]) == (1, 2)
    assert event.facts["reason"] == "token_mismatch"
    assert "claim" not in event.facts


def test_a_loss_swallowed_in_a_savepoint_is_raised_at_the_blocks_end(database, store):
    raised: list[BaseException] = []

    async def swallow(job: Job) -> None:
        try:
            async with job.complete() as conn:
                await conn.execute(INSERT, [job.id, job.token, "written"])
                await asyncio.to_thread(steal, database, job.id)
                with contextlib.suppress(psycopg.Error):
                    async with conn.transaction():
                        await conn.execute(
                            "select faultline.fence(%s, %s, gen_random_uuid())", [job.id, job.token]
                        )
        except LeaseLost as lost:
            raised.append(lost)
            raise

    job = enqueue(store, task="swallow")

    drain(database, swallow)

    assert [type(error) for error in raised] == [LeaseLost]
    assert effects(database) == []
    assert state_of(store, job) == "running"


def test_a_handler_that_swallows_the_loss_altogether_does_not_succeed(database, store):
    """Its rows were rolled back: a success without them would be work that was not done."""
    attempts: list[int] = []
    workers: list[InProcess] = []

    def swallow(job: Job) -> str:
        attempts.append(job.token)
        with contextlib.suppress(LeaseLost), job.complete(result="done") as conn:
            conn.execute(INSERT, [job.id, job.token, "written"])
            if len(attempts) == 1:
                (attempt,) = workers[0].worker._state.running
                attempt.safe_at = (
                    0.0  # as if no beat had come through: refused here, before the database is asked
                )
        return "" if len(attempts) > 1 else "all is well"

    with working(database, swallow) as worker:
        workers.append(worker)
        job = enqueue(store, task="swallow")
        eventually(lambda: state_of(store, job) == "succeeded")

    assert outcomes(store, job) == ["released", "succeeded"]
    assert effects(database) == ["written"]
    assert store.run(calls.get(job)).result == "done"


@pytest.mark.parametrize("isolation", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_at_repeatable_read_the_fence_comes_first(database, store, writing, isolation):
    """Its row is locked from the start, so no session can take the job while the block runs."""
    job = enqueue(store, task="write")
    seen: list[Any] = []

    def look(running: Job, conn: Any) -> None:
        seen.append(rows(database, "select id from faultline.active for no key update skip locked"))

    drain(database, writing(look, isolation=isolation))

    assert seen == [[]]
    assert effects(database) == ["written"]
    assert outcomes(store, job) == ["succeeded"]


def test_a_block_at_repeatable_read_may_last_longer_than_a_lease(database, store, writing):
    """No beat can renew a row that its own transaction has locked; no claim can take it either."""
    job = enqueue(store, task="write")

    handler = writing(lambda *_: threading.Event().wait(4.5), isolation=IsolationLevel.REPEATABLE_READ)

    # Long enough for a busy machine to renew it until the block begins, and shorter than the block.
    with working(database, handler, config=short(lease_for=timedelta(seconds=3))):
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]
    assert effects(database) == ["written"]


def test_isolation_and_row_factory_are_the_blocks_own(database, store):
    seen = []

    async def first(job: Job) -> None:
        async with job.complete(isolation=IsolationLevel.SERIALIZABLE) as conn:
            conn.row_factory = dict_row

    async def second(job: Job) -> None:
        async with job.complete() as conn:
            row = await (await conn.execute("select current_setting('transaction_isolation')")).fetchone()
            seen.append(row)

    enqueue(store, task="first")
    drain_config = quick(jobs_max=1)
    enqueue(store, task="second")

    drain(database, first, second, config=drain_config)

    assert seen == [("read committed",)]


def test_a_job_commits_once(database, store, writing):
    raised: list[BaseException] = []

    def again(job: Job) -> None:
        try:
            job.complete()
        except AlreadySettled as error:
            raised.append(error)

    job = enqueue(store, task="write")

    drain(database, writing(after=again))

    assert [type(error) for error in raised] == [AlreadySettled]
    assert outcomes(store, job) == ["succeeded"]


def test_a_value_returned_after_the_block_is_reported_and_the_committed_result_stays(
    database, store, writing, caplog
):
    job = enqueue(store, task="write")

    drain(database, writing(returns="too late"))

    assert store.run(calls.get(job)).result == "done"
    assert any("returned a value after job.complete()" in record.message for record in caplog.records)


@pytest.mark.parametrize("word", [Snooze(timedelta(hours=1)), Cancel(), Dead("why")])
def test_a_word_returned_from_the_block_is_reported_as_one_that_came_too_late(
    database, store, writing, caplog, word
):
    job = enqueue(store, task="write")

    drain(database, writing(returns=word))

    assert outcomes(store, job) == ["succeeded"]
    assert any(
        f"said {type(word).__name__} after job.complete() had settled it" in record.message
        and "raise it inside the block" in record.message
        for record in caplog.records
    )


def test_an_error_after_the_block_is_reported_and_the_success_stays(database, store, writing, caplog):
    job = enqueue(store, task="write")

    def fail(_: Job) -> None:
        raise ValueError("too late")

    drain(database, writing(after=fail))

    assert outcomes(store, job) == ["succeeded"]
    (line,) = (record.message for record in caplog.records if "its success stands" in record.message)
    assert "ValueError" in line
    assert "test_transaction.py" in line
    assert "faultline/worker/" not in line  # the handler's own frames are what a reader needs


def test_a_block_that_rolled_back_may_be_tried_again_in_the_same_attempt(database, store):
    async def twice(job: Job) -> None:
        with contextlib.suppress(ValueError):
            async with job.complete() as conn:
                await conn.execute(INSERT, [job.id, job.token, "first"])
                raise ValueError
        async with job.complete(result=2) as conn:
            await conn.execute(INSERT, [job.id, job.token, "second"])

    job = enqueue(store, task="twice")

    drain(database, twice)

    assert effects(database) == ["second"]
    assert store.run(calls.get(job)).result == 2


def test_a_result_that_cannot_be_kept_stops_the_block_before_it_begins(database, store, writing):
    job = enqueue(store, task="write")

    drain(database, writing(result=object()))

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]
    assert store.run(calls.get(job)).error.startswith("BadDocument")


def test_each_kind_of_handler_is_told_its_own_kind_of_block(database, store):
    raised: dict[str, BaseException] = {}

    async def wrong(job: Job) -> None:
        try:
            with job.complete():
                pass
        except SyncInAsync as error:
            raised["with in the loop"] = error

    def wrong_in_thread(job: Job) -> None:
        async def enter() -> None:
            async with job.complete():
                pass

        try:
            asyncio.run(enter())
        except FaultlineError as error:
            raised["async with elsewhere"] = error

    jobs = [enqueue(store, task="wrong"), enqueue(store, task="wrong_in_thread")]

    drain(database, wrong, wrong_in_thread)

    assert "use `async with`" in str(raised["with in the loop"])
    assert "use `with`" in str(raised["async with elsewhere"])
    assert [state_of(store, job) for job in jobs] == ["succeeded"] * 2


def test_many_threads_may_commit_at_once(database, store):
    """Each finds its own lease among those of the worker, while the others come and go."""

    def write(job: Job) -> None:
        with job.complete(result=job.id) as conn:
            conn.execute(INSERT, [job.id, job.token, str(job.id)])

    ids = store.run(calls.enqueue_many([new_job(task="write", max_attempts=1)] * 300))

    drain(database, write, config=quick(jobs_max=8))

    assert sorted(effects(database), key=int) == [str(job) for job in sorted(ids)]
    assert rows(database, "select distinct outcome::text from faultline.ledger") == [("succeeded",)]


def test_cancelled_while_it_commits_a_job_gets_the_databases_answer(database, store, writing):
    """A timeout that falls into the commit does not cut it short: it is answered, and it happens once."""
    job = enqueue(store, task="write")
    blocker = psycopg.connect(database)

    def lock_the_row(running: Job, _: Any) -> None:
        blocker.execute("select from faultline.active where id = %s for update", [running.id])

    with working(database, writing(lock_the_row), watchdog=False) as worker:
        eventually(lambda: rows(database, COMMITTING))
        attempt = attempt_of(worker, job)
        attempt.timeout_at = 0.0
        eventually(lambda: attempt.stopping == "timeout")
        blocker.rollback()
        eventually(lambda: outcomes(store, job))

    blocker.close()
    assert outcomes(store, job) == ["succeeded"]
    assert effects(database) == ["written"]
    assert store.run(calls.refusals(job)) == []


OTHERS = 4


@pytest.fixture(params=["connection", "cursor", "savepoint"])
def late_use(request: pytest.FixtureRequest) -> Any:
    """What code behind the block may do with the connection it was lent, in the loop."""

    async def use(conn: Any, cursor: Any, job: Job) -> None:
        if request.param == "connection":
            await conn.execute(INSERT, [job.id, job.token, "late"])
        elif request.param == "cursor":
            await cursor.execute(INSERT, [job.id, job.token, "late"])
        else:
            async with conn.transaction():
                await cursor.execute(INSERT, [job.id, job.token, "late"])

    return use


def test_a_connection_used_after_its_block_reaches_no_other_jobs_transaction(database, store, late_use):
    """The pool has lent its session to the next handler by then, which is in the middle of its block."""
    told: list[BaseException] = []
    sessions: list[int] = []
    has_it, tried = asyncio.Event(), asyncio.Event()

    async def leaks(job: Job) -> None:
        async with job.complete() as conn:
            cursor = conn.cursor()
            sessions.append(conn.info.backend_pid)
        await has_it.wait()
        try:
            await late_use(conn, cursor, job)
        except TransactionEnded as error:
            told.append(error)
        assert conn.closed
        await conn.close()  # not the session's end
        tried.set()

    async def goes_on(job: Job) -> None:
        async with job.complete() as conn:
            if conn.info.backend_pid == sessions[0]:
                has_it.set()
            await tried.wait()
            await conn.execute(INSERT, [job.id, job.token, "its own"])

    first = enqueue(store, task="leaks")
    with working(database, leaks, goes_on, config=quick()):
        eventually(lambda: state_of(store, first) == "succeeded")
        others = [enqueue(store, task="goes_on") for _ in range(OTHERS)]  # one of them has its session
        eventually(lambda: all(state_of(store, other) == "succeeded" for other in others))

    assert effects(database) == ["its own"] * OTHERS
    (error,) = told
    assert f"lent to job {first} (leaks) was used after the block had ended; nothing was sent" in str(error)


def test_a_connection_used_after_its_block_in_a_thread_reaches_no_other_jobs_transaction(database, store):
    told: list[BaseException] = []
    sessions: list[int] = []
    has_it, tried = threading.Event(), threading.Event()

    def leaks(job: Job) -> None:
        with job.complete() as conn:
            cursor = conn.cursor()
            sessions.append(conn.info.backend_pid)
        has_it.wait(30)
        for use in (conn, cursor):
            try:
                use.execute(INSERT, [job.id, job.token, "late"])
            except TransactionEnded as error:
                told.append(error)
        conn.close()
        tried.set()

    def goes_on(job: Job) -> None:
        with job.complete() as conn:
            if conn.info.backend_pid == sessions[0]:
                has_it.set()
            tried.wait(30)
            conn.execute(INSERT, [job.id, job.token, "its own"])

    first = enqueue(store, task="leaks")
    with working(database, leaks, goes_on, config=quick()):
        eventually(lambda: state_of(store, first) == "succeeded")
        others = [enqueue(store, task="goes_on") for _ in range(OTHERS)]  # one of them has its session
        eventually(lambda: all(state_of(store, other) == "succeeded" for other in others))

    assert effects(database) == ["its own"] * OTHERS
    assert len(told) == 2


def test_a_task_that_writes_on_behind_the_block_is_refused(database, store):
    """Started inside, it is still at it when the block ends."""
    told: list[BaseException] = []

    async def leaves_a_task(job: Job) -> None:
        async def write_on() -> None:
            for _ in range(10_000):
                await conn.execute(INSERT, [job.id, job.token, "by the task"])

        async with job.complete() as conn:
            task = asyncio.create_task(write_on())
            await asyncio.sleep(0.05)
        try:
            await task
        except TransactionEnded as error:
            told.append(error)

    job = enqueue(store, task="leaves_a_task")
    drain(database, leaves_a_task)

    assert state_of(store, job) == "succeeded"
    assert len(told) == 1
    assert effects(database)


def test_what_a_handler_registers_on_its_connection_stays_its_own(database, store, writing):
    factories: list[Any] = []

    def change(_: Job, conn: Any) -> None:
        factories.append(conn.row_factory)
        conn.row_factory = dict_row

    first = enqueue(store, task="write")
    second = enqueue(store, task="write")
    drain(database, writing(change), config=quick(jobs_max=1))

    assert state_of(store, first) == state_of(store, second) == "succeeded"
    assert dict_row not in factories


def test_a_session_that_its_begin_could_not_reset_is_left_for_another(database, store, monkeypatch):
    monkeypatch.setattr("faultline.worker.transactions.transaction.AS_NEW", b"reset all; select 1 / 0")
    jobs = [enqueue(store, task="write_alone") for _ in range(3)]
    sessions: list[int] = []

    async def write_alone(job: Job) -> None:
        async with job.complete() as conn:
            sessions.append(conn.info.backend_pid)
            await conn.execute(INSERT, [job.id, job.token, "written"])

    drain(database, write_alone, config=quick(jobs_max=1))

    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 3
    assert len(set(sessions)) == 3


@pytest.mark.parametrize("act", ["commit", "rollback"])
def test_commit_and_rollback_are_not_the_handlers(database, store, act):
    jobs = [enqueue(store, task=task) for task in ("in_loop", "in_thread")]
    refused: list[str] = []

    async def in_loop(job: Job) -> None:
        async with job.complete() as conn:
            await conn.execute(INSERT, [job.id, job.token, "written"])
            with pytest.raises(psycopg.ProgrammingError, match=f"Explicit {act}"):
                await getattr(conn, act)()
            refused.append("in_loop")

    def in_thread(job: Job) -> None:
        with job.complete() as conn:
            conn.execute(INSERT, [job.id, job.token, "written"])
            with pytest.raises(psycopg.ProgrammingError, match=f"Explicit {act}"):
                getattr(conn, act)()
            refused.append("in_thread")

    drain(database, in_loop, in_thread)

    assert sorted(refused) == ["in_loop", "in_thread"]
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 2
    assert effects(database) == ["written"] * 2
