"""Enqueueing: what is asked for is what stands in the database, in every form of asking."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from faultline import (
    BadArguments,
    BadDocument,
    BadName,
    Constant,
    Exponential,
    FaultlineError,
    KeyConflict,
    OutOfBounds,
)
from faultline.errors import ConfigError, InputError, SyncInAsync
from tests.support import contents


def test_an_enqueued_job_stands_in_its_queue_with_its_args(shop):
    handle = shop.charge.enqueue(7, note="soon")

    job = shop.app.get(handle.id)

    assert (job.state, job.task, job.queue, job.max_attempts) == ("queued", "charge", "billing", 5)
    assert job.args == {"order_id": 7, "note": "soon"}


def test_an_enqueued_job_is_the_same_from_async_code(shop):
    async def main():
        async with shop.app:
            handle = await shop.charge.aenqueue(7, note="soon")
            return await handle.ainfo()

    job = asyncio.run(main())

    assert (job.state, job.queue, job.args) == ("queued", "billing", {"order_id": 7, "note": "soon"})


def test_an_app_works_in_one_event_loop_after_another(shop):
    async def main():
        handle = await shop.ping.aenqueue()
        await shop.app.aclose()
        return handle.id

    assert asyncio.run(main()) < asyncio.run(main())


def test_options_are_kept_with_the_job(shop, db):
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    task = shop.charge.using(
        queue="mail",
        priority=-5,
        run_at=tomorrow,
        max_attempts=3,
        retry=Constant(timedelta(seconds=5)),
        timeout=timedelta(minutes=1),
        lease=timedelta(seconds=30),
    )

    job = task.enqueue(7).info()

    assert (job.queue, job.priority, job.max_attempts, job.run_at) == ("mail", -5, 3, tomorrow)
    kept = db.execute(
        "select retry, timeout, lease_for from faultline.later where id = %s", [job.id]
    ).fetchone()
    assert kept == ({"kind": "constant", "wait": 5.0}, timedelta(minutes=1), timedelta(seconds=30))


def test_options_of_the_task_itself_stay_as_they_were(shop):
    shop.charge.using(queue="mail", priority=9)

    job = shop.charge.enqueue(7).info()

    assert (job.queue, job.priority) == ("billing", 0)


def test_a_new_moment_replaces_the_old_one_however_it_was_told(shop):
    soon = shop.charge.using(run_at=datetime.now(UTC)).using(delay=timedelta(days=3)).new(7)

    assert (soon.run_at, soon.delay) == (None, timedelta(days=3))


def test_the_same_key_gives_the_same_job_and_another_request_a_conflict(shop):
    keyed = shop.charge.using(key="order-7", key_for=timedelta(hours=1))

    assert keyed.enqueue(7) == keyed.enqueue(7)
    with pytest.raises(KeyConflict):
        keyed.enqueue(8)


def test_a_job_enqueued_in_a_transaction_comes_and_goes_with_it(shop, db):
    kept = shop.charge.enqueue_in(db, 7)
    db.commit()
    dropped = shop.charge.enqueue_in(db, 8)
    db.rollback()

    assert kept.info().state == "queued"
    with pytest.raises(FaultlineError, match="no trace of job"):
        dropped.info()


def test_a_job_enqueued_in_an_async_transaction_comes_and_goes_with_it(shop, database):
    async def main():
        async with shop.app, await AsyncConnection.connect(database) as conn:
            kept = await shop.charge.aenqueue_in(conn, 7)
            await conn.commit()
            await shop.charge.aenqueue_in(conn, 8)
            await conn.rollback()
            return kept.id, [job.id for job in await shop.app.ajobs()]

    kept, found = asyncio.run(main())

    assert found == [kept]


def test_a_callers_connection_may_make_rows_as_it_likes(shop, database):
    with psycopg.connect(database, row_factory=dict_row) as conn:
        handle = shop.charge.enqueue_in(conn, 7)

    assert handle.info().args == {"order_id": 7}


def test_a_task_can_still_be_called(shop):
    assert shop.charge(None, 7) == "charged 7"
    assert shop.charge.__name__ == "charge"
    assert repr(shop.charge) == "Task('charge')"


def test_a_blocking_form_inside_an_event_loop_names_the_other_form(shop, db):
    async def main():
        forms = {
            "enqueue": lambda: shop.charge.enqueue(7),
            "enqueue_in": lambda: shop.charge.enqueue_in(db, 7),
            "enqueue_many": lambda: shop.charge.enqueue_many([]),
            "get": lambda: shop.app.get(1),
            "jobs": lambda: shop.app.jobs(),
            "cancel": lambda: shop.app.cancel(1),
            "retry_now": lambda: shop.app.retry_now(1),
            "replay": lambda: shop.app.replay(1),
            "wake": lambda: shop.app.wake(),
            "result": lambda: shop.charge.handle(1).result(),
            "info": lambda: shop.charge.handle(1).info(),
        }
        for form, act in forms.items():
            with pytest.raises(SyncInAsync, match=rf"^{form}\(\) would block .* `await a{form}\("):
                act()

    asyncio.run(main())


def test_a_blocking_form_in_a_thread_beside_the_loop_is_welcome(shop):
    async def main():
        return await asyncio.to_thread(shop.charge.enqueue, 7)

    assert asyncio.run(main()).info().args == {"order_id": 7}


REFUSED: list[tuple[Any, type[FaultlineError]]] = [
    (lambda task: task.enqueue("seven"), BadArguments),
    (lambda task: task.enqueue(), BadArguments),
    (lambda task: task.enqueue(7, note="nul\0"), BadDocument),
    (lambda task: task.enqueue(7, note="\ud800"), BadDocument),
    (lambda task: task.enqueue(7, note="x" * 2**20), BadDocument),
    (lambda task: task.using(queue="'; drop table jobs;--").enqueue(7), BadName),
    (lambda task: task.using(key="").enqueue(7), BadName),
    (lambda task: task.using(max_attempts=0).enqueue(7), OutOfBounds),
    (lambda task: task.using(priority=101).enqueue(7), OutOfBounds),
    (lambda task: task.using(delay=timedelta(-1)).enqueue(7), OutOfBounds),
    (lambda task: task.using(lease=timedelta(0)).enqueue(7), OutOfBounds),
    (lambda task: task.using(run_at=datetime(2026, 1, 1)).enqueue(7), OutOfBounds),  # noqa: DTZ001
    (lambda task: task.using(run_at=datetime.max.replace(tzinfo=UTC)).enqueue(7), OutOfBounds),
    (lambda task: task.using(run_at=datetime.now(UTC), delay=timedelta(1)).enqueue(7), InputError),
    (lambda task: task.using(retry=lambda attempt, error: None).enqueue(7), ConfigError),
    (lambda task: task.enqueue_in(None, 7), InputError),
]


@pytest.mark.parametrize(("act", "kind"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_at_the_door_changes_no_row(shop, database, act, kind):
    before = contents(database)

    with pytest.raises(kind):
        act(shop.charge)

    assert contents(database) == before


def test_the_bounds_themselves_are_accepted_by_the_database(shop):
    for options in (
        {"max_attempts": 1, "priority": -100, "delay": timedelta(0), "lease": timedelta(milliseconds=500)},
        {"max_attempts": 10_000, "priority": 100, "delay": timedelta(days=3_600), "lease": timedelta(days=1)},
        {"timeout": timedelta(milliseconds=100), "key": "k" * 255, "key_for": timedelta(days=3_600)},
        {"timeout": timedelta(days=30), "queue": "q" * 63, "retry": Exponential()},
        {"run_at": datetime(2000, 1, 1, tzinfo=UTC)},
        {"run_at": datetime(2199, 12, 31, tzinfo=UTC)},
    ):
        assert shop.charge.using(**options).enqueue(7).id


def test_a_document_at_the_limit_is_accepted_by_the_database(shop):
    around = len('{"note": "", "order_id": 7}')

    assert shop.charge.enqueue(7, note="x" * (2**20 - around)).id
    assert shop.charge.enqueue(7, note=',:"\\é\x1f' * 60_000).id
    with pytest.raises(BadDocument):
        shop.charge.enqueue(7, note="x" * (2**20 - around + 1))


def test_a_document_64_levels_deep_is_accepted_by_the_database(shop):
    @shop.app.task
    def deep(value: Any) -> None: ...

    value: Any = 1
    for _ in range(62):
        value = [value]

    assert deep.enqueue(value).id
    with pytest.raises(BadDocument, match="deeper than 64"):
        deep.enqueue([value])
