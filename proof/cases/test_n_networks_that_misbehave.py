"""Cases P4, N4, N5 and N9: a held COMMIT, a one-way line, a slow one, and one that speaks nonsense."""

import asyncio
import signal
import threading
from datetime import timedelta
from typing import Any

import pytest

from faultline.job import Job
from faultline.store import calls
from proof.cases.ways import GarblingWay, HoldingWay, OneWay, SlowWay
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import eventually, quick, rows, short, working

PLAIN: dict[str, Any] = {"pooler": "transaction"}  # statements as text, so that the proxy can tell them apart
INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"

READY = b"Z\x00\x00\x00\x05I"


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


def test_p4_a_worker_frozen_between_fence_and_commit_is_waited_for_and_commits_once(
    database, store, real_worker
):
    """Its COMMIT is under way. The row is locked, so no worker takes the job, even long after its lease."""
    with HoldingWay(database) as way:
        frozen = real_worker(way.dsn, pooler="transaction", watchdog=False)
        way.hold_before("COMMIT")
        job = enqueue(store, task="spend", args='{"said": "frozen"}')
        assert way.held.wait(30)
        pacemaker = frozen.pacemaker()
        frozen.signal(signal.SIGSTOP)

        async def spend(job: Job, said: str) -> None:
            async with job.complete() as conn:
                await conn.execute(INSERT, [job.id, job.token, "successor"])

        with working(database, spend, config=short()):
            late = "select lease_until < faultline.now() - interval '2 seconds' from faultline.active"
            eventually(lambda: rows(database, late) == [(True,)])
            assert outcomes(store, job) == []
            frozen.signal(signal.SIGCONT)
            way.let_go.set()
            eventually(lambda: outcomes(store, job))

        assert pacemaker
    assert outcomes(store, job) == ["succeeded"]
    assert effects(database) == ["frozen"]


@pytest.mark.parametrize("lost", ["mute", "deaf"])
def test_n4_a_worker_on_a_one_way_line_stops_before_its_lease_ends(database, store, lost):
    ended = threading.Event()
    began = threading.Event()

    async def work(job: Job) -> None:
        if began.is_set():
            return  # the next holder; its attempt may be the first again, where the release still arrived
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            still_ours = await asyncio.to_thread(
                rows, database, "select lease_until > faultline.now() from faultline.active"
            )
            if still_ours == [(True,)]:
                ended.set()
            raise

    with OneWay(database) as way, working(way.dsn, work, config=short(), watchdog=False):
        job = enqueue(store, task="work")
        assert began.wait(30)
        setattr(way, lost, True)
        assert ended.wait(30)
        with working(database, work, config=short()):
            eventually(lambda: state_of(store, job) == "succeeded")
        setattr(way, lost, False)
        way.close_way()
        way.open_way()

    assert outcomes(store, job).count("succeeded") == 1


def test_n5_a_slow_line_costs_no_lease_that_is_longer_than_four_round_trips(database, store):
    async def work() -> None:
        await asyncio.sleep(4)

    config = quick(lease_for=timedelta(seconds=2))
    with SlowWay(database, 0.1) as way, working(way.dsn, work, config=config):
        job = enqueue(store, task="work", max_attempts=1)
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]


@pytest.mark.parametrize(
    "reply",
    [b"\xff" * 300, READY, b"T\x00\x00\x00\x40half", b"D\x7f\xff\xff\xff", b""],
    ids=["noise", "a false ready", "half a reply", "a message too long", "nothing"],
)
@pytest.mark.parametrize("statement", ["faultline.complete_many(", "faultline.claim("])
def test_n9_a_reply_that_is_nonsense_leaves_no_bad_state(database, store, reply, statement):
    """The statement was carried out: rows tell, and each job is done once."""
    armed: list[int] = []
    with GarblingWay(database) as way:

        async def work(job: Job) -> int:
            if not armed:  # not earlier: a worker sends such calls to warm up
                armed.append(job.id)
                way.garble(statement, reply)
            return job.id

        with working(way.dsn, work, **PLAIN):
            first = enqueue(store, task="work", max_attempts=1)
            eventually(lambda: state_of(store, first) == "succeeded")
            second = enqueue(store, task="work", max_attempts=1)
            eventually(lambda: state_of(store, second) == "succeeded")

        assert way.garbled == 1
    assert [outcomes(store, job) for job in (first, second)] == [["succeeded"]] * 2
    assert store.run(calls.refusals()) == []
