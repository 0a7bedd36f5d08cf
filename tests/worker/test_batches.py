"""Batch handlers: many jobs in one call, an outcome each, and a lease of its own for each."""

import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from faultline import BatchItem, Cancel, Dead, Faultline, Job, OutOfBounds, Snooze
from faultline.errors import AlreadySettled, ConfigError
from faultline.store import calls
from faultline.task import spec_of
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import drain, eventually, quick, rows, working

WAIT = timedelta(milliseconds=200)
EFFECT = "insert into effects (job_id, token) values (%s, %s)"


@dataclass
class Document:
    id: int
    note: str = ""


Items = list[BatchItem[Document]]


def document(number: int) -> str:
    return f'{{"id":{number}}}'


def a_batch(handler, size=100, **options):
    return spec_of(handler, batch=size, **{"name": "index", "batch_wait": WAIT, **options})


def enqueued(store, many, **options):
    return [enqueue(store, task="index", args=document(number), **options) for number in range(many)]


@pytest.mark.parametrize("is_async", [True, False])
def test_many_jobs_are_done_in_few_calls_however_few_slots_there_are(database, store, is_async):
    ids = enqueued(store, 30)
    called: list[list[int]] = []

    async def handler(items: Items) -> None:
        called.append([item.args.id for item in items])

    def plain(items: Items) -> None:
        called.append([item.args.id for item in items])

    drain(database, a_batch(handler if is_async else plain, 20), config=quick(jobs_max=1))

    assert sorted(number for call in called for number in call) == list(range(30))
    assert max(map(len, called)) == 20
    assert len(called) <= 3
    assert {state_of(store, job) for job in ids} == {"succeeded"}
    tokens = {store.run(calls.get(job)).token for job in ids}
    assert len(tokens) >= 1
    assert all(outcomes(store, job) == ["succeeded"] for job in ids)


@pytest.mark.parametrize("is_async", [True, False])
def test_each_job_has_its_own_outcome(database, store, is_async):
    ids = enqueued(store, 7, max_attempts=2)

    def act(items: Items) -> None:
        by_id = {item.args.id: item for item in items}
        by_id[0].done({"kept": 1})
        by_id[1].fail(ValueError("no such document"))
        by_id[2].end(Snooze(timedelta(hours=1), "later"))
        by_id[3].end(Cancel("unwanted"))
        by_id[4].end(Dead("no use"))
        with pytest.raises(AlreadySettled):
            by_id[4].done()
        assert by_id[4].has_ended

    async def handler(items: Items) -> dict[int, Any]:
        act(items)
        return {ids[5]: "by a mapping", ids[6]: KeyError("x")}

    def plain(items: Items) -> dict[int, Any]:
        act(items)
        return {ids[5]: "by a mapping", ids[6]: KeyError("x")}

    with working(database, a_batch(handler if is_async else plain)):
        eventually(lambda: outcomes(store, ids[6]) == ["failed"])

    first = [outcomes(store, job)[0] for job in ids]
    assert first == ["succeeded", "failed", "snoozed", "cancelled", "dead", "succeeded", "failed"]
    assert store.run(calls.get(ids[0])).result == {"kept": 1}
    assert store.run(calls.get(ids[5])).result == "by a mapping"
    assert "no such document" in store.run(calls.get(ids[1])).error


@pytest.mark.parametrize("error", [RuntimeError("broken"), SystemExit(3), StopIteration("odd")])
@pytest.mark.parametrize("is_async", [True, False])
def test_an_exception_fails_all_that_have_no_outcome_yet(database, store, is_async, error):
    ids = enqueued(store, 3, max_attempts=1)

    async def handler(items: Items) -> None:
        items[0].done()
        raise error

    def plain(items: Items) -> None:
        items[0].done()
        raise error

    if is_async and isinstance(error, StopIteration):
        pytest.skip("Python makes a RuntimeError of it")
    drain(database, a_batch(handler if is_async else plain, 3))

    assert sorted(state_of(store, job) for job in ids) == ["dead", "dead", "succeeded"]


def test_bad_arguments_fail_their_own_job(database, store):
    ids = enqueued(store, 2)
    bad = enqueue(store, task="index", args='{"id":"x"}', max_attempts=1)
    called: list[int] = []

    async def handler(items: Items) -> None:
        called.extend(item.args.id for item in items)

    drain(database, a_batch(handler))

    assert state_of(store, bad) == "dead"
    assert sorted(called) == [0, 1]
    assert {state_of(store, job) for job in ids} == {"succeeded"}


@pytest.mark.parametrize("is_async", [True, False])
def test_a_lost_lease_is_told_for_that_job_alone(database, store, is_async):
    ids = enqueued(store, 3)
    seen: list[tuple[int, bool]] = []
    go_on = threading.Event()

    def look(items: Items) -> None:
        seen.extend((item.job.id, item.job.lost) for item in items)

    async def handler(items: Items) -> None:
        while not any(item.job.lost for item in items):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        look(items)

    def plain(items: Items) -> None:
        while not any(item.job.lost for item in items) and not go_on.wait(0.01):
            pass
        look(items)

    with working(
        database, a_batch(handler if is_async else plain, 3), config=quick(lease_for=timedelta(seconds=1))
    ):
        eventually(lambda: all(state_of(store, job) == "running" for job in ids))
        store.run(calls.cancel(ids[1]))
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in (ids[0], ids[2])))
        go_on.set()

    assert sorted(seen) == [(ids[0], False), (ids[1], True), (ids[2], False)]
    assert state_of(store, ids[1]) == "cancelled"


def test_each_job_has_its_own_timeout_and_the_call_ends_when_none_is_left(database, store):
    first, last = (
        enqueue(store, task="index", args=document(1), timeout=timedelta(milliseconds=each), max_attempts=1)
        for each in (700, 1500)
    )
    ended: list[str] = []

    async def handler(items: Items) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(f"cancelled with {sum(not item.job.lost for item in items)} left")
            raise

    with working(database, a_batch(handler, 2)):
        eventually(lambda: state_of(store, first) == "dead")
        was = state_of(store, last)
        eventually(lambda: state_of(store, last) == "dead")
        eventually(lambda: ended)

    assert was == "running"
    assert ended == ["cancelled with 0 left"]


def test_a_job_that_is_done_is_recorded_while_the_others_go_on(database, store):
    ids = enqueued(store, 2)
    go_on = threading.Event()

    def plain(items: Items) -> None:
        items[0].done()
        go_on.wait(30)

    with working(database, a_batch(plain, 2)):
        first = eventually(lambda: [job for job in ids if state_of(store, job) == "succeeded"])
        assert len(first) == 1
        go_on.set()
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in ids))


def test_jobs_complete_in_one_transaction_of_the_users(database, store):
    ids = enqueued(store, 4)

    async def handler(items: Items) -> None:
        async with await psycopg.AsyncConnection.connect(database) as conn:
            for item in items:
                await conn.execute(
                    "insert into effects (job_id, token) values (%s, %s)", [item.job.id, item.job.token]
                )
                await item.job.complete_in(conn, result={"n": item.args.id})

    drain(database, a_batch(handler, 4))

    assert {state_of(store, job) for job in ids} == {"succeeded"}
    assert store.run(calls.get(ids[3])).result == {"n": 3}
    assert sorted(job for (job,) in rows(database, "select job_id from effects")) == ids


def test_in_one_transaction_a_lost_lease_rolls_all_of_it_back_and_the_others_are_tried_again(database, store):
    ids = enqueued(store, 2, retry='{"kind": "constant", "delay": 0.01}')
    calls_made: list[int] = []

    def plain(items: Items) -> None:
        calls_made.append(len(items))
        with psycopg.connect(database) as conn:
            for number, item in enumerate(items):
                if len(calls_made) == 1 and number == 1:
                    store.run(calls.cancel(item.job.id))
                conn.execute(EFFECT, [item.job.id, item.job.token])
                item.job.complete_in(conn)

    with working(database, a_batch(plain, 2)):
        eventually(lambda: sorted(state_of(store, job) for job in ids) == ["cancelled", "succeeded"])

    assert rows(database, "select count(*) from effects") == [(1,)]


def test_a_job_that_crashed_goes_by_itself(database, store, db):
    ids = enqueued(store, 3)
    db.execute("update faultline.active set crashes = 1 where id = %s", [ids[0]])
    called: list[int] = []

    async def handler(items: Items) -> None:
        called.append(len(items))

    drain(database, a_batch(handler, 3))

    assert sorted(called) == [1, 2]


def test_jobs_of_other_tasks_run_beside_a_batch_that_gathers(database, store):
    enqueued(store, 2)
    enqueue(store, task="other")
    told: list[tuple[str, float]] = []

    async def handler(items: Items) -> None:
        told.append(("batch", time.monotonic()))

    async def other() -> None:
        told.append(("other", time.monotonic()))

    drain(database, a_batch(handler, batch_wait=timedelta(seconds=1)), spec_of(other))

    assert [name for name, _ in told] == ["other", "batch"]


def test_enqueue_takes_the_fields_of_one_job(database):
    app = Faultline(database)

    @app.task(batch=10, batch_wait=WAIT, queue="search")
    async def index(items: list[BatchItem[Document]]) -> None: ...

    new = index.new(id=7)
    assert (new.args, new.queue) == ('{"id":7}', "search")
    handle = index.enqueue(7, note="x")
    assert handle.info().args == {"id": 7, "note": "x"}
    with pytest.raises(Exception, match="argument id: expected `int`"):
        index.new(id="seven")
    app.close()


async def bare(items: list[int]) -> None: ...


async def two(items: Items, other: int) -> None: ...


async def good(items: Items) -> None: ...


async def wrong(items: list[BatchItem[int]]) -> None: ...


@pytest.mark.parametrize(
    ("handler", "options", "error"),
    [
        (bare, {"batch": 10}, "one parameter"),
        (two, {"batch": 10}, "one parameter"),
        (wrong, {"batch": 10}, "int is neither"),
        (good, {"batch": 0}, "from 1 to 1000"),
        (good, {"batch": True}, "from 1 to 1000"),
        (good, {"batch": 10, "batch_wait": timedelta(minutes=2)}, "to one minute"),
        (good, {"batch": 10, "run": "process"}, "leave run and transaction out"),
        (good, {"batch": 10, "transaction": True}, "leave run and transaction out"),
    ],
)
def test_what_cannot_be_a_batch_handler_is_refused_where_it_is_defined(handler, options, error):
    with pytest.raises((ConfigError, OutOfBounds), match=error):
        spec_of(handler, **options)


def test_a_batch_handler_is_called_by_hand_in_a_test():
    job = Job(7, "index", "default", 1, 5, 0, 3, None, datetime.now(UTC))
    item = BatchItem(job, Document(1))

    item.done()

    assert item.has_ended
