"""Many jobs at once: in order, all of them or none, in bounded memory."""

import asyncio
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from faultline import KeyConflict, NewJob
from faultline.client.batch_sizes import BULK_JOBS_FIRST, BULK_JOBS_MAX
from faultline.client.bulk import BulkEnqueue
from faultline.store import calls


def test_ids_come_in_the_order_of_the_jobs(shop):
    ids = shop.app.enqueue_many(shop.charge.new(order_id=n) for n in range(2_500))

    jobs = {job.id: job.args["order_id"] for job in shop.app.jobs(limit=1000)}
    assert len(set(ids)) == 2_500
    assert [jobs[job_id] for job_id in ids[-1000:]] == list(range(1_500, 2_500))


def test_async_code_enqueues_many_too(shop):
    async def main():
        async with shop.app:
            return await shop.charge.aenqueue_many(shop.charge.new(n) for n in range(1_500))

    assert len(asyncio.run(main())) == 1_500


def test_jobs_of_different_tasks_and_options_go_together(shop):
    later = shop.charge.using(delay=timedelta(days=1), queue="mail")

    ids = shop.app.enqueue_many([shop.charge.new(1), shop.ping.new(), later.new(2), shop.charge.new(3)])

    jobs = [shop.app.get(job_id) for job_id in ids]
    assert [(job.task, job.queue) for job in jobs] == [
        ("charge", "billing"), ("ping", "default"), ("charge", "mail"), ("charge", "billing")
    ]  # fmt: skip


def test_all_jobs_are_enqueued_or_none(shop):
    shop.charge.using(key="taken").enqueue(1)

    with pytest.raises(KeyConflict):
        shop.app.enqueue_many([*[shop.charge.new(2)] * 1_001, shop.charge.using(key="taken").new(3)])

    assert len(shop.app.jobs()) == 1


def test_a_generator_that_breaks_enqueues_nothing(shop):
    def orders():
        for n in range(1_500):
            yield shop.charge.new(n)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shop.app.enqueue_many(orders())

    assert shop.app.jobs() == []


def test_keyed_jobs_are_enqueued_once(shop):
    jobs = [shop.charge.using(key=f"order-{n}").new(n) for n in (1, 2, 1)]

    first, second, again = shop.app.enqueue_many(jobs)

    assert (first, len({first, second})) == (again, 2)
    assert shop.app.enqueue_many(jobs) == [first, second, again]


def test_no_jobs_are_no_trouble(shop):
    assert shop.app.enqueue_many([]) == []


def job(**options):
    return NewJob(task="t", args="{}", max_attempts=1, **options)


def test_neighbours_with_equal_options_share_a_call():
    alike = [job()] * (BULK_JOBS_FIRST * 3 + BULK_JOBS_MAX + 1)
    bulk = BulkEnqueue([*alike, job(key="a"), job(key="b"), job(priority=1), job()])

    sizes = [len(call.args["args"].values) for call in bulk.calls()]

    assert sizes == [BULK_JOBS_FIRST, BULK_JOBS_FIRST * 2, BULK_JOBS_MAX, 1, 2, 1, 1]
    assert not bulk.all_sent  # nothing was answered yet
    for size in sizes:
        bulk.add([1] * size)
    assert bulk.all_sent
    assert not bulk.repeatable


def test_only_queues_with_due_jobs_are_hinted_at():
    now = datetime.now(UTC)
    bulk = BulkEnqueue(
        [
            job(queue="later", delay=timedelta(1)),
            job(queue="future", run_at=now + timedelta(1)),
            job(queue="past", run_at=now - timedelta(1)),
            job(queue="zero", delay=timedelta(0)),
        ]
    )
    list(bulk.calls())

    assert bulk.due_queues == {"past", "zero"}


def test_memory_stays_flat_while_a_generator_is_sent():
    bulk = BulkEnqueue(job() for _ in range(50_000))
    tracemalloc.start()
    for call in bulk.calls():
        assert call.name == calls.enqueue_many([job()]).name
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2_000_000
