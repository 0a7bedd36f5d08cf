"""An idle worker's next claim lies ready, and the wake-up itself sends it: nothing is overlooked for that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from faultline.config import WorkerConfig
from faultline.errors import ServerUnavailable
from faultline.job import Job
from faultline.store import calls
from faultline.store.line import Early, Line
from faultline.worker.feeder import Feeder
from faultline.worker.outage import Outage
from faultline.worker.shelf import Shelf
from tests.support import LEASE, enqueue, state_of
from tests.worker.harness import eventually, quick, registry, working

SOON = 5.0


async def work(job: Job) -> int:
    return job.id


def succeeded(store: Any, job: int) -> bool:
    return state_of(store, job) == "succeeded"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each early claim was sent, in the moment somebody said so."""
    told: list[bool] = []
    send = Early.send

    def told_of(self: Early) -> None:
        send(self)
        told.append(self.was_sent)

    monkeypatch.setattr(Early, "send", told_of)
    return told


def test_the_wake_up_sends_the_claim(database, store, sent):
    config = quick(poll_every=timedelta(minutes=1), idle_poll_every=timedelta(minutes=1))
    with working(database, work, config=config, watchdog=False) as idle:
        eventually(lambda: idle.worker._shelf.eager is not None)
        for _ in range(5):
            eventually(lambda: idle.worker._shelf.eager is not None)
            job = enqueue(store, task="work")
            store.run(calls.wake("default"))
            eventually(partial(succeeded, store, job), 20)

    assert True in sent


class Claims:
    """A line whose early claims are answered when a test says so."""

    def __init__(self, *replies: asyncio.Future[list[Any]]) -> None:
        self.replies = list(replies)
        self.asked = 0
        self.under_way = asyncio.Event()

    async def fetch(self, call: Any, taker: Any = None) -> list[Any]:
        self.asked += 1
        return []

    def early(self, call: Any) -> Any:
        return EarlyClaim(self, self.replies.pop(0)) if self.replies else None


class EarlyClaim:
    was_sent = False

    def __init__(self, line: Claims, reply: asyncio.Future[list[Any]]) -> None:
        self._line = line
        self._reply = reply

    def send(self, taker: Any = None) -> None:
        self.was_sent = True
        self._line.under_way.set()

    async def reply(self) -> list[Any]:
        return await self._reply


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    minute = timedelta(minutes=1)
    shelf = Shelf(WorkerConfig(poll_every=minute, idle_poll_every=minute))
    shelf.listening = True
    yield shelf
    shelf.board.close()


def feeder_of(shelf: Shelf, line: Claims) -> Feeder:
    return Feeder(shelf, line, registry(), Outage(15.0), 1, None, None)  # type: ignore[arg-type]


async def until_resting(shelf: Shelf) -> None:
    async with asyncio.timeout(SOON):
        while shelf.eager is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def resting(shelf: Shelf) -> AsyncIterator[tuple[Feeder, Claims, asyncio.Future[list[Any]]]]:
    """A feeder with nothing to do, and the reply that its next claim will get."""
    reply: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    line = Claims(reply)
    feeder = feeder_of(shelf, line)
    run = asyncio.create_task(feeder.run())
    await until_resting(shelf)
    yield feeder, line, reply
    feeder.close()
    async with asyncio.timeout(SOON):
        await run


def test_a_wake_up_that_comes_behind_an_early_claim_is_followed_by_another_claim(shelf, monkeypatch):
    """What it tells of was committed too late for the claim that is under way."""
    monkeypatch.setattr("faultline.worker.feeder.PAUSE_FIRST", 60.0)

    async def ask() -> None:
        async with resting(shelf) as (_, line, reply):
            before = line.asked
            shelf.wake()
            shelf.wake()  # before the feeder had its turn
            assert line.under_way.is_set()
            reply.set_result([])
            async with asyncio.timeout(SOON):
                while line.asked == before:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.001)

    asyncio.run(ask())


def test_one_wake_up_is_one_claim(shelf, monkeypatch):
    monkeypatch.setattr("faultline.worker.feeder.PAUSE_FIRST", 60.0)

    async def ask() -> None:
        async with resting(shelf) as (_, line, reply):
            before = line.asked
            shelf.wake()
            reply.set_result([])
            await asyncio.sleep(0.2)
            assert line.asked == before

    asyncio.run(ask())


def test_a_feeder_that_is_closed_hears_its_early_claim_out(shelf):
    """Cut off, its jobs would have to wait for a lease."""

    async def ask() -> None:
        async with resting(shelf) as (feeder, _, reply):
            shelf.wake()
            feeder.close()
            await asyncio.sleep(0.1)
            assert not feeder.closed.is_set()
            reply.set_result([])
        assert feeder.closed.is_set()

    asyncio.run(ask())


def claim() -> Any:
    return calls.claim(["default"], 1, lease=LEASE, claim=uuid4())


def test_whoever_comes_behind_an_early_call_waits_for_its_end(database, store):
    job = enqueue(store, task="work")

    async def ask() -> tuple[Any, Any]:
        line = Line(database)
        await line.run(claim_nothing())
        early = line.early(claim())
        assert early is not None
        early.send()
        assert early.was_sent
        other = asyncio.create_task(line.run(claim_nothing()))
        await asyncio.sleep(0)
        try:
            return await early.reply(), await other
        finally:
            await line.close()

    (row,), nothing = asyncio.run(ask())
    assert row[0] == job
    assert nothing == []


def claim_nothing() -> Any:
    return calls.claim(["nobody-is-here"], 1, lease=LEASE, claim=uuid4())


def test_an_early_call_is_not_sent_over_a_line_that_is_in_use_or_another(database, store):
    async def ask() -> None:
        line = Line(database)
        assert line.early(claim()) is None  # nobody is connected yet
        await line.run(claim_nothing())
        busy = line.early(claim())
        speaking = asyncio.create_task(line.run(claim_nothing()))
        await asyncio.sleep(0)
        busy.send()
        assert not busy.was_sent
        await speaking
        late = line.early(claim_nothing())
        await line.close()
        await line.run(claim_nothing())
        late.send()
        assert not late.was_sent
        await line.close()

    asyncio.run(ask())


def test_an_early_call_whose_connection_breaks_is_unknown(database, store):
    async def ask() -> None:
        line = Line(database)
        await line.run(claim_nothing())
        early = line.early(claim())
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("begin; lock table faultline.active in access exclusive mode")
            early.send()
            await asyncio.sleep(0.1)
            with psycopg.connect(database, autocommit=True) as third:
                third.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                    " and query ~ 'faultline.claim'"
                )
        with pytest.raises(ServerUnavailable):
            await early.reply()
        assert await line.run(claim_nothing()) == []  # over a new one
        await line.close()

    asyncio.run(ask())
