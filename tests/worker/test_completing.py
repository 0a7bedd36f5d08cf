"""job.complete and job.fenced: the result set inside, what is said behind the block, rows that only fence."""

import asyncio
import gc
import logging
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline.errors import AlreadySettled, LeaseLost
from faultline.job import Job
from faultline.store import calls
from faultline.task import spec_of
from tests.support import TAKE_OVER, enqueue, outcomes, state_of
from tests.worker import completing_app
from tests.worker.harness import drain, execute, rows

INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


@pytest.fixture(params=["async", "thread"])
def in_block(request: pytest.FixtureRequest) -> Any:
    """Makes a handler that writes a row in a block, does `inside(tx)`, and after it `behind(job)`."""

    def make(inside=lambda tx: None, behind=lambda job: None, *, block="complete"):
        async def write(job: Job) -> Any:
            async with getattr(job, block)() as tx:
                await tx.execute(INSERT, [job.id, job.token, "written"])
                inside(tx)
            return await asyncio.to_thread(behind, job)

        def write_in_thread(job: Job) -> Any:
            with getattr(job, block)() as tx:
                tx.execute(INSERT, [job.id, job.token, "written"])
                inside(tx)
            return behind(job)

        handler = write if request.param == "async" else write_in_thread
        handler.__name__ = "write"
        return handler

    return make


def set_result(value: Any) -> Any:
    def inside(tx: Any) -> None:
        tx.result = value

    return inside


def test_a_result_set_inside_the_block_is_the_jobs_result(database, store, in_block):
    job = enqueue(store, task="write")

    drain(database, in_block(set_result({"paid": 7})))

    assert store.run(calls.get(job)).result == {"paid": 7}
    assert effects(database) == ["written"]


def test_a_result_that_cannot_be_kept_rolls_the_block_back(database, store, in_block):
    job = enqueue(store, task="write", max_attempts=1)

    drain(database, in_block(set_result(float("nan"))))

    assert (effects(database), outcomes(store, job)) == ([], ["dead"])
    assert "BadDocument" in store.run(calls.get(job)).error


def test_a_value_returned_behind_the_block_is_told_unless_it_is_the_result(database, store, in_block, caplog):
    caplog.set_level(logging.ERROR, "faultline.worker")
    same = enqueue(store, task="write")
    drain(database, in_block(set_result([1, 2]), lambda job: [1, 2]))
    assert (caplog.records, store.run(calls.get(same)).result) == ([], [1, 2])

    other = enqueue(store, task="write")
    drain(database, in_block(set_result([1, 2]), lambda job: [3]))

    assert any("returned a value after" in record.getMessage() for record in caplog.records)
    assert store.run(calls.get(other)).result == [1, 2]


def test_a_forgotten_await_of_complete_in_is_told(database, store, caplog, recwarn):
    """The rows and the success commit apart then; failing the attempt would write the rows again."""
    caplog.set_level(logging.ERROR, "faultline.worker")
    job = enqueue(store, task="pay")

    async def pay(job: Job) -> None:
        async with await psycopg.AsyncConnection.connect(database) as mine:
            await mine.execute(INSERT, [job.id, job.token, "written"])
            job.complete_in(mine)

    drain(database, pay)
    gc.collect()

    assert (state_of(store, job), effects(database)) == ("succeeded", ["written"])
    (told,) = [record.getMessage() for record in caplog.records]
    assert "called job.complete_in() and did not await it" in told
    assert any("'job.complete_in' was never awaited" in str(warning.message) for warning in recwarn)


def test_an_error_behind_the_block_stands_beside_the_success(database, store, in_block):
    job = enqueue(store, task="write")

    def fail(job: Job) -> None:
        raise ValueError("too late")

    drain(database, in_block(behind=fail))

    (entry,) = store.run(calls.history(job))
    assert (entry.outcome, entry.error.partition("\n")[0]) == ("succeeded", "ValueError: too late")


def test_an_error_behind_the_block_of_a_process_stands_beside_the_success(database, store):
    job = enqueue(store, task="late")

    drain(database, completing_app.late.spec)

    (entry,) = store.run(calls.history(job))
    assert (entry.outcome, entry.error.partition("\n")[0]) == ("succeeded", "ValueError: too late")


def test_a_second_block_raises_at_once(database, store, in_block):
    told = []

    def again(job: Job) -> None:
        try:
            job.complete()
        except AlreadySettled as error:
            told.append(error)

    job = enqueue(store, task="write")
    drain(database, in_block(behind=again))

    assert (len(told), effects(database), outcomes(store, job)) == (1, ["written"], ["succeeded"])


def test_fenced_rows_are_committed_and_the_job_goes_on(database, store, in_block):
    job = enqueue(store, task="write")
    seen = []

    def look(running: Job) -> str:
        seen.append((effects(database), state_of(store, running.id)))
        return "the end"

    drain(database, in_block(behind=look, block="fenced"))

    assert seen == [(["written"], "running")]
    assert (outcomes(store, job), store.run(calls.get(job)).result) == (["succeeded"], "the end")


def test_fenced_rows_of_a_lost_lease_roll_back(database, store, in_block):
    job = enqueue(store, task="write")
    raised = []

    def lose(tx: Any) -> None:
        execute(database, TAKE_OVER, job)

    handler = in_block(lose, block="fenced")

    def kept(error: LeaseLost) -> None:
        raised.append(error.reason)

    drain(database, telling(handler, kept))

    assert raised == ["token_mismatch"]
    assert (effects(database), state_of(store, job)) == ([], "running")


def telling(handler: Any, tell: Any) -> Any:
    """The same handler; the refusal it meets is told before it goes on."""
    if asyncio.iscoroutinefunction(handler):

        async def write(job: Job) -> Any:
            try:
                return await handler(job)
            except LeaseLost as error:
                tell(error)
                raise

        return write

    def write_in_thread(job: Job) -> Any:
        try:
            return handler(job)
        except LeaseLost as error:
            tell(error)
            raise

    write_in_thread.__name__ = "write"
    return write_in_thread


def test_a_fenced_block_and_a_completing_one_follow_each_other(database, store):
    async def write(job: Job) -> None:
        async with job.fenced() as tx:
            await tx.execute(INSERT, [job.id, job.token, "first"])
        async with job.fenced() as tx:
            await tx.execute(INSERT, [job.id, job.token, "second"])
        async with job.complete() as tx:
            await tx.execute(INSERT, [job.id, job.token, "last"])

    job = enqueue(store, task="write")
    drain(database, write)

    assert (effects(database), outcomes(store, job)) == (["first", "second", "last"], ["succeeded"])


def test_a_process_that_dies_after_its_own_commit_has_succeeded(database, store):
    """Its worker heard of complete_in, and asks the rows before it tells of a crash."""
    job = enqueue(store, task="commit_and_die", args='{"dsn": "' + database + '"}', max_attempts=1)

    drain(database, completing_app.commit_and_die.spec)

    assert (effects(database), outcomes(store, job)) == (["written"], ["succeeded"])


def test_a_process_that_dies_before_its_own_commit_has_failed(database, store):
    job = enqueue(store, task="die_uncommitted", args='{"dsn": "' + database + '"}', max_attempts=1)

    drain(database, completing_app.die_uncommitted.spec)

    assert (effects(database), outcomes(store, job)) == ([], ["dead"])


def test_a_timeout_behind_a_committed_completion_is_no_refusal(database, store):
    """The worker speaks for a handler that it stopped: the rows are asked, and the success stands."""
    import psycopg

    async def write(job: Job) -> None:
        async with await psycopg.AsyncConnection.connect(database) as conn:
            await conn.execute(INSERT, [job.id, job.token, "written"])
            await job.complete_in(conn)
        await asyncio.sleep(300)

    job = enqueue(store, task="write")
    drain(database, spec_of(write, timeout=timedelta(seconds=1)))

    assert (effects(database), outcomes(store, job), store.run(calls.refusals(job))) == (
        ["written"], ["succeeded"], [],
    )  # fmt: skip
