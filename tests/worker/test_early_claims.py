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
from faultline.store.session import DbSession, PipelinedCall
from faultline.worker.backend import ClaimParams
from faultline.worker.claiming.claimer import Claimer
from faultline.worker.state import WorkerState
from tests.support import LEASE, enqueue, state_of
from tests.worker.harness import claimer_of, eventually, quick, working

SOON = 5.0


async def work(job: Job) -> int:
    return job.id


def succeeded(store: Any, job: int) -> bool:
    return state_of(store, job) == "succeeded"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each early claim was sent, at the moment of the wake-up."""
    told: list[bool] = []
    send = PipelinedCall.send

    def told_of(self: PipelinedCall) -> None:
        send(self)
        told.append(self.was_sent)

    monkeypatch.setattr(PipelinedCall, "send", told_of)
    return told


def test_the_wake_up_sends_the_claim(database, store, sent):
    config = quick(poll_every=timedelta(minutes=1), idle_poll_every=timedelta(minutes=1))
    with working(database, work, config=config, watchdog=False) as idle:
        eventually(lambda: idle.worker._claimer._prepared is not None)
        for _ in range(5):
            eventually(lambda: idle.worker._claimer._prepared is not None)
            job = enqueue(store, task="work")
            store.run(calls.wake("default"))
            eventually(partial(succeeded, store, job), 20)

    assert True in sent


class Claims:
    """A backend whose prepared claims are answered when a test says so."""

    def __init__(self, *replies: asyncio.Future[list[Any]]) -> None:
        self.replies = list(replies)
        self.asked = 0
        self.under_way = asyncio.Event()

    async def claim(self, params: ClaimParams, handler: Any) -> None:
        self.asked += 1
        handler.take([])

    def prepare_claim(self, params: ClaimParams) -> Any:
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
def state() -> Iterator[WorkerState]:
    minute = timedelta(minutes=1)
    state = WorkerState(WorkerConfig(poll_every=minute, idle_poll_every=minute))
    state.listening = True
    yield state
    state.lease_table.close()


async def until_resting(claimer: Claimer) -> None:
    async with asyncio.timeout(SOON):
        while claimer._prepared is None:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def resting(state: WorkerState) -> AsyncIterator[tuple[Claimer, Claims, asyncio.Future[list[Any]]]]:
    """A claimer with nothing to do, and the reply that its next claim will get."""
    reply: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    line = Claims(reply)
    claimer = claimer_of(state, line)
    run = asyncio.create_task(claimer.run())
    await until_resting(claimer)
    yield claimer, line, reply
    claimer.close()
    async with asyncio.timeout(SOON):
        await run


def test_a_wake_up_that_comes_behind_an_early_claim_is_followed_by_another_claim(state, monkeypatch):
    """What it tells of was committed too late for the claim that is under way."""
    monkeypatch.setattr("faultline.worker.claiming.claimer.PAUSE_FIRST", 60.0)

    async def ask() -> None:
        async with resting(state) as (claimer, line, reply):
            before = line.asked
            claimer.wake()
            claimer.wake()  # before the claimer had its turn
            assert line.under_way.is_set()
            reply.set_result([])
            async with asyncio.timeout(SOON):
                while line.asked == before:  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(0.001)

    asyncio.run(ask())


def test_one_wake_up_is_one_claim(state, monkeypatch):
    monkeypatch.setattr("faultline.worker.claiming.claimer.PAUSE_FIRST", 60.0)

    async def ask() -> None:
        async with resting(state) as (claimer, line, reply):
            before = line.asked
            claimer.wake()
            reply.set_result([])
            await asyncio.sleep(0.2)
            assert line.asked == before

    asyncio.run(ask())


def test_a_closed_claimer_waits_for_the_reply_to_its_early_claim(state):
    """Cut off, its jobs would have to wait for a lease."""

    async def ask() -> None:
        async with resting(state) as (claimer, _, reply):
            claimer.wake()
            claimer.close()
            await asyncio.sleep(0.1)
            assert not claimer.closed.is_set()
            reply.set_result([])
        assert claimer.closed.is_set()

    asyncio.run(ask())


def claim() -> Any:
    return calls.claim(["default"], 1, lease=LEASE, claim=uuid4())


def test_a_call_behind_an_early_call_waits_for_its_end(database, store):
    job = enqueue(store, task="work")

    async def ask() -> tuple[Any, Any]:
        line = DbSession(database)
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
    return calls.claim(["empty"], 1, lease=LEASE, claim=uuid4())


def test_an_early_call_is_not_sent_over_a_line_that_is_in_use_or_another(database, store):
    async def ask() -> None:
        line = DbSession(database)
        assert line.early(claim()) is None  # no connection is open yet
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
        line = DbSession(database)
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
