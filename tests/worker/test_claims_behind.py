"""A worker with much to do sends its next claim behind the last, before it unwraps what that brought."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import uvloop

from faultline.config import WorkerConfig
from faultline.job import Job
from faultline.store import calls
from faultline.store.line import Early, Line
from faultline.worker.asking import Claim
from faultline.worker.memory import Memory
from faultline.worker.shelf import Shelf
from tests.support import LEASE, enqueue, new_job
from tests.worker.harness import drain, quick

SOON = 10.0


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf(WorkerConfig(jobs_max=10, buffer_max=2000))
    yield shelf
    shelf.board.close()


def claim(room: int = 1, queue: str = "default") -> Any:
    return calls.claim([queue], room, lease=LEASE, claim=uuid4())


class Chain:
    """Sends one early call behind another, as often as it is told to; keeps what came, in its order."""

    def __init__(self, line: Line, links: int) -> None:
        self.line = line
        self.links = links
        self.sent: list[Early] = []
        self.came: list[Any] = []

    def answered(self, rows: int) -> None:
        self.came.append(rows)
        if self.links:
            self.links -= 1
            early = self.line.early(claim(), self)
            assert early is not None
            early.send(behind=True)
            assert early.was_sent
            self.sent.append(early)

    def take(self, rows: list[Any]) -> None:
        self.came.append([row[0] for row in rows])


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("faultline.store.lean.LOOK_AGAIN_SECONDS", 60.0)  # nobody is saved by looking again
    return request.param


def test_calls_behind_one_another_are_answered_in_their_order_before_anybody_elses(database, store, run):
    jobs = [enqueue(store, task="work") for _ in range(3)]

    async def ask() -> tuple[Chain, list[Any]]:
        line = Line(database)
        await line.run(claim(queue="nobody-is-here"))
        chain = Chain(line, links=2)
        async with asyncio.timeout(SOON):
            await line.fetch(claim(), chain)
            await chain.sent[0].reply()
            others = await line.run(claim(queue="nobody-is-here"))  # waits for the last of them
            assert chain.came[-1] == [jobs[2]]
            await chain.sent[1].reply()
        await line.close()
        return chain, others

    chain, others = run(ask())
    assert chain.came == [1, [jobs[0]], 1, [jobs[1]], 1, [jobs[2]]]
    assert others == []


def test_wake_ups_are_heard_behind_a_chain_of_calls(database, store, run):
    enqueue(store, task="work")
    enqueue(store, task="work")

    async def ask() -> None:
        line, heard = Line(database), asyncio.Queue[str | None]()
        line.tell(heard.put_nowait)
        await line.run(claim(queue="nobody-is-here"))
        chain = Chain(line, links=1)
        async with asyncio.timeout(SOON):
            await line.fetch(claim(), chain)
            await chain.sent[0].reply()
            await asyncio.to_thread(store.run, calls.wake("default"))
            while await heard.get() != "default":
                pass
        await line.close()

    run(ask())


def test_a_drain_claims_behind_its_claims_and_does_all_in_line(database, store, monkeypatch):
    followed: list[bool] = []
    send = Early.send

    def told_of(self: Early, *, behind: bool = False) -> None:
        send(self, behind=behind)
        followed.append(behind and self.was_sent)

    monkeypatch.setattr(Early, "send", told_of)
    done: list[int] = []

    async def work(job: Job) -> None:
        done.append(job.id)

    store.run(calls.enqueue_many([new_job(task="work")] * 6000))
    drain(database, work, config=quick(jobs_max=1))

    assert len(done) == 6000
    assert done == sorted(done)
    assert True in followed


def test_a_claim_that_follows_jobs_knows_that_something_is_in_hand(shelf):
    """Though its jobs are not on the board yet: what is given back of them it has not seen."""

    class EarlyClaim:
        was_sent = False

        def send(self, *, behind: bool = False) -> None:
            self.was_sent = behind

    class Carries:
        def early(self, call: Any, taker: Any) -> Any:
            return EarlyClaim()

    async def ask() -> Claim:
        follower = Claim(Carries(), shelf, 5, lambda *_: None, lambda _: None)  # type: ignore[arg-type]
        assert follower.put_down(claim(5), Memory(), {})
        follower.send(coming=5)
        return follower

    follower = asyncio.run(ask())
    assert follower.was_sent
    assert not follower.had_none


def test_jobs_that_are_coming_count_as_if_they_were_there(shelf):
    shelf._rate = 1e6  # as fast as can be: the buffer is what bounds

    assert shelf.wanted() == 500
    assert shelf.wanted(coming=1000) == 500
    assert shelf.wanted(coming=1501) == 0
    shelf.left = 700
    assert shelf.wanted(coming=500) == 200
    assert shelf.wanted(coming=700) == 0
