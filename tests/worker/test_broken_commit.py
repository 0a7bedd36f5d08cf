"""A.ix: what became of a commit whose connection broke is told by rows, before anything is said."""

import asyncio
from typing import Any

import pytest

from faultline.errors import ServerUnavailable
from faultline.job import Job
from faultline.store import calls
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import drain, eventually, quick, rows, working

INSERT = "insert into effects (job_id, token, said) values (%s, %s, 'written')"
PLAIN: dict[str, Any] = {"pooler": "transaction"}  # statements as text, so that the proxy can tell them apart


@pytest.fixture(params=["async", "thread"])
def writes(request: pytest.FixtureRequest) -> Any:
    raised: list[BaseException] = []

    async def write(job: Job) -> None:
        try:
            async with job.complete(result="done") as conn:
                await conn.execute(INSERT, [job.id, job.token])
        except BaseException as error:
            raised.append(error)
            raise

    def write_in_thread(job: Job) -> None:
        try:
            with job.complete(result="done") as conn:
                conn.execute(INSERT, [job.id, job.token])
        except BaseException as error:
            raised.append(error)
            raise

    handler = write if request.param == "async" else write_in_thread
    handler.__name__ = "write"
    handler.raised = raised  # type: ignore[attr-defined]
    return handler


@pytest.mark.parametrize("room", [1, 4])
def test_n2_a_commit_cut_before_it_arrived_is_not_committed_and_tried_again(
    database, store, proxy, writes, room
):
    """With room for one job there is one connection to lend, and the broken one must not stand in the way."""
    job = enqueue(store, task="write", max_attempts=1)
    proxy.cut("COMMIT", "before")

    with working(proxy.dsn, writes, config=quick(jobs_max=room), **PLAIN):
        eventually(lambda: state_of(store, job) == "succeeded")

    assert proxy.cuts == 1
    assert [type(error) for error in writes.raised] == [ServerUnavailable]
    assert rows(database, "select count(*) from effects") == [(1,)]
    assert outcomes(store, job) == ["snoozed", "succeeded"]
    assert store.run(calls.get(job)).attempt == 1


def test_a_commit_cut_after_it_was_carried_out_is_found_committed(database, store, proxy, writes):
    job = enqueue(store, task="write", max_attempts=1)
    proxy.cut("COMMIT", "after")

    drain(proxy.dsn, writes, **PLAIN)

    assert proxy.cuts == 1
    assert writes.raised == []
    assert rows(database, "select count(*) from effects") == [(1,)]
    assert outcomes(store, job) == ["succeeded"]
    assert store.run(calls.refusals(job)) == []


def test_a_connection_that_breaks_inside_the_block_costs_no_attempt(database, store, proxy, writes):
    job = enqueue(store, task="write", max_attempts=1)
    proxy.cut("insert into effects", "before")

    with working(proxy.dsn, writes, **PLAIN):
        eventually(lambda: state_of(store, job) == "succeeded")

    assert proxy.cuts == 1
    assert [type(error) for error in writes.raised] == [ServerUnavailable]
    assert rows(database, "select count(*) from effects") == [(1,)]
    assert store.run(calls.get(job)).attempt == 1


async def nothing(job: Job) -> int:
    return job.id


def cutting(proxy: Any, statement: str, when: Any) -> Any:
    """Cuts, once, when the first handler runs: before that a worker sends such calls only to warm up."""
    cut: list[int] = []

    def once(job: Job) -> None:
        if not cut:
            cut.append(job.id)
            proxy.cut(statement, when)

    return once


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_of_successes_cut_on_its_way_is_recorded_once(database, store, proxy, when):
    cut = cutting(proxy, "faultline.complete_many(", when)

    async def number(job: Job) -> int:
        cut(job)
        return job.id

    ids = store.run(calls.enqueue_many([new_job(task="number", max_attempts=1)] * 20))

    drain(proxy.dsn, number, **PLAIN)

    assert proxy.cuts == 1
    assert [store.run(calls.get(job)).result for job in ids] == ids
    assert rows(database, "select count(*) from faultline.ledger") == [(20,)]
    assert store.run(calls.refusals()) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failure_cut_on_its_way_is_recorded_once(database, store, proxy, when):
    cut = cutting(proxy, "faultline.fail_many(", when)

    async def fails(job: Job) -> None:
        cut(job)
        raise ValueError

    job = enqueue(store, task="fails", max_attempts=3)

    drain(proxy.dsn, fails, **PLAIN)

    assert proxy.cuts == 1
    assert outcomes(store, job) == ["failed"]
    assert store.run(calls.refusals()) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_claim_cut_on_its_way_strands_no_job(database, store, proxy, when):
    """Rule 3: the worker asks again with the same claim id, and the jobs it was granted come back to it."""
    ids = store.run(calls.enqueue_many([new_job(task="nothing", max_attempts=1)] * 3))
    proxy.cut("faultline.claim(", when)

    drain(proxy.dsn, nothing, **PLAIN)

    assert proxy.cuts == 1
    assert {state_of(store, job) for job in ids} == {"succeeded"}
    assert rows(database, "select distinct token, attempt from faultline.ledger") == [(1, 1)]


def test_a_refusal_cut_after_it_was_carried_out_is_recorded_all_the_same(database, store, proxy):
    cut = cutting(proxy, "faultline.complete_many(", "after")

    async def slow(job: Job) -> None:
        cut(job)
        await asyncio.to_thread(store.run, calls.cancel(job.id))

    job = enqueue(store, task="slow")

    drain(proxy.dsn, slow, **PLAIN)

    assert proxy.cuts == 1
    assert state_of(store, job) == "cancelled"
    assert [refusal.reason for refusal in store.run(calls.refusals(job))] == ["cancelled"]
