"""Waiting for a job, and being told how it ended."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import date, timedelta

import pytest

from faultline import BadDocument, JobCancelled, JobDead, JobNotFound, ResultNotKept, Snooze, WaitTimeout
from faultline.store import calls
from tests.support import claim_one


def settle(store, handle, result='"paid"'):
    lease = claim_one(store, queues=("billing", "default"))
    assert lease.job_id == handle.id
    store.run(calls.complete(lease, result))


def test_a_result_is_what_the_handler_returned(shop, store):
    handle = shop.charge.enqueue(7)
    settle(store, handle)

    assert handle.result(timeout=5) == "paid"
    assert asyncio.run(closing(shop, handle.aresult(timedelta(seconds=5)))) == "paid"


async def closing(shop, waiting):
    try:
        return await waiting
    finally:
        await shop.app.aclose()


def test_waiting_ends_when_the_job_does(shop, store):
    handle = shop.charge.enqueue(7)
    later = threading.Timer(0.1, settle, (store, handle))
    later.start()

    assert handle.result(timeout=10) == "paid"
    later.join()


def test_a_dead_job_raises_with_its_last_error(shop, store):
    handle = shop.charge.enqueue(7)
    store.run(calls.bury(claim_one(store, queues=("billing",)), "no use", "ValueError: no such order"))

    with pytest.raises(JobDead, match=r"charge.*is dead") as dead:
        handle.result(timeout=5)

    assert dead.value.info.id == handle.id


def test_a_cancelled_job_raises(shop):
    handle = shop.charge.enqueue(7)
    handle.cancel("withdrawn")

    with pytest.raises(JobCancelled, match="was cancelled: withdrawn"):
        handle.result(timeout=5)


def test_a_job_that_has_not_ended_in_time_goes_on(shop):
    handle = shop.charge.enqueue(7)

    with pytest.raises(WaitTimeout, match=r"has not ended within 0.05 s"):
        handle.result(timeout=0.05)
    with pytest.raises(WaitTimeout):
        asyncio.run(closing(shop, handle.aresult(0)))

    assert handle.info().state == "queued"


def test_an_unknown_job_is_not_waited_for(shop):
    with pytest.raises(
        JobNotFound, match="no trace of job 4711: the transaction that enqueued it has not committed"
    ):
        shop.charge.handle(4711).result()


@dataclass
class Receipt:
    number: int
    on: date


def test_a_result_comes_back_with_its_type(shop, store):
    @shop.app.task
    def receipt() -> Receipt | Snooze:
        return Snooze(timedelta(1))

    handle = receipt.enqueue()
    settle(store, handle, '{"number": 7, "on": "2026-01-01"}')

    assert handle.result(5) == Receipt(7, date(2026, 1, 1))


def test_a_result_of_another_shape_is_named_and_still_readable(shop, store):
    handle = shop.charge.enqueue(7)
    settle(store, handle, '{"not": "text"}')

    with pytest.raises(BadDocument, match="does not fit the handler's return annotation"):
        handle.result(5)
    assert handle.info().result == {"not": "text"}


def test_a_result_that_its_queue_did_not_keep_is_told_as_that(shop, store):
    store.run(calls.set_retention("billing", "outline"))
    store.run(calls.set_retention("default", "outline"))
    charged, pinged = shop.charge.enqueue(7), shop.ping.enqueue()
    store.run(calls.complete(claim_one(store, queues=("billing",)), '"paid"'))
    store.run(calls.complete(claim_one(store, queues=("default",)), "null"))

    with pytest.raises(ResultNotKept, match="succeeded, and its result was not kept: queue billing keeps"):
        charged.result(5)
    assert pinged.result(5) is None  # it returns nothing, and who waits wants to know the end
