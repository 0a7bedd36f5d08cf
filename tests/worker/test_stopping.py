"""Leaving in good order: SIGTERM, a grace, a second SIGTERM; the unfinished goes back with its attempt."""

import asyncio
import signal
import threading
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from faultline.config import WorkerConfig
from faultline.job import Job
from faultline.store import calls
from faultline.worker.state import WorkerState
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import (
    PATIENCE,
    InProcess,
    claimer_of,
    eventually,
    is_alive,
    quick,
    registry,
    rows,
    working,
)


def test_p11_sigterm_lets_running_jobs_finish_and_gives_back_the_rest(database, store, real_worker):
    worker = real_worker(config={"jobs_max": 2}, seconds={"lease_for": 5, "grace": 20})
    running = [enqueue(store, task="nap", args='{"seconds": 1.5}', max_attempts=1) for _ in range(2)]
    eventually(lambda: rows(database, "select count(*) from notes") == [(2,)])
    waiting = [enqueue(store, task="nap", args='{"seconds": 1.5}', max_attempts=1) for _ in range(3)]

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert [outcomes(store, job) for job in running] == [["succeeded"]] * 2
    for job in waiting:
        assert state_of(store, job) == "queued"
        assert store.run(calls.get(job)).attempt == 0
        assert set(outcomes(store, job)) <= {"released"}
    assert rows(database, "select count(*) from faultline.workers where stopped_at is null") == [(0,)]


@pytest.mark.parametrize("task", ["nap", "nap_in_thread"])
def test_p11_after_the_grace_the_running_go_back_with_their_attempt(database, store, real_worker, task):
    worker = real_worker(seconds={"lease_for": 5, "grace": 0.5})
    jobs = [enqueue(store, task=task, args='{"seconds": 60}', max_attempts=1) for _ in range(2)]
    eventually(lambda: rows(database, "select count(*) from notes") == [(2,)])
    tokens = [store.run(calls.get(job)).token for job in jobs]

    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    for job, token in zip(jobs, tokens, strict=True):
        info = store.run(calls.get(job))
        assert (info.state, info.attempt, info.token) == ("queued", 0, token)
        assert outcomes(store, job) == ["released"]


def test_p11_a_second_sigterm_gives_back_at_once(database, store, real_worker):
    worker = real_worker(seconds={"lease_for": 5, "grace": 300})
    job = enqueue(store, task="nap", args='{"seconds": 300}', max_attempts=1)
    eventually(lambda: rows(database, "select 1 from notes"))

    worker.signal(signal.SIGTERM)
    time.sleep(0.3)
    assert worker.process.poll() is None
    worker.signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert outcomes(store, job) == ["released"]
    assert store.run(calls.get(job)).attempt == 0


def test_ctrl_c_is_the_same_and_leaves_no_session_behind(database, store, real_worker):
    asking = (
        "select count(*) from pg_stat_activity where datname = current_database() and application_name = %s"
    )
    before = rows(database, asking, "faultline")
    worker = real_worker()
    pacemaker = worker.pacemaker()

    worker.signal(signal.SIGINT)

    assert worker.wait() == 0
    eventually(lambda: not is_alive(pacemaker))
    eventually(lambda: rows(database, asking, "faultline") <= before)


def test_a_claim_under_way_when_the_worker_is_told_to_stop_strands_no_job(database, store):
    """A claim that is cut off leaves its jobs with no worker that knows of them; they count as crashed."""

    async def work() -> None: ...

    for turn in range(4):
        ids = store.run(calls.enqueue_many([new_job(task="work")] * 200))
        worker = InProcess(database, registry(work), quick(jobs_max=8), watchdog=False).start()
        time.sleep(0.005 * turn)
        assert worker.leave() == 0
        assert rows(database, "select count(*) from faultline.active where claim is not null") == [(0,)], turn
        assert ids

    assert rows(
        database, "select count(*) from faultline.ledger where outcome not in ('succeeded', 'released')"
    ) == [(0,)]


def test_an_async_handler_that_will_not_be_cancelled_does_not_keep_the_worker(database, store):
    free, begun = threading.Event(), threading.Event()

    async def deaf(job: Job) -> None:
        begun.set()
        while not free.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    enqueue(store, task="deaf")
    worker = InProcess(database, registry(deaf), quick(grace=timedelta(seconds=0.2))).start()
    assert begun.wait(
        PATIENCE
    )  # claimed is not enough: a job that did not begin is given back, and no handler is stuck

    worker.stop()
    eventually(lambda: worker.worker.stuck)
    free.set()

    assert worker.join() == 1


def test_a_worker_leaves_within_its_bounds_though_the_database_is_away(database, store, proxy):
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(30)

    job = enqueue(store, task="work")
    worker = InProcess(proxy.dsn, registry(work), quick(grace=timedelta(seconds=0.2))).start()
    assert begun.wait(PATIENCE)  # claimed is not enough: the reply to the claim may still be on its way
    proxy.close_way()

    assert worker.leave() == 1
    assert state_of(store, job) == "running"


def test_until_empty_ends_when_nothing_is_due(database, store):
    async def work() -> None: ...

    later = enqueue(store, task="work", delay=timedelta(hours=1))
    now = enqueue(store, task="work")

    assert InProcess(database, registry(work), quick(), until_empty=True).start().join() == 0

    assert (state_of(store, now), state_of(store, later)) == ("succeeded", "queued")


def test_a_job_given_back_while_the_claimer_asks_is_not_nothing():
    """The claim did not see it yet, and its answer comes when no lease is left: there may be work."""
    state = WorkerState(WorkerConfig())
    slot, _ = state.lease_table.write(1, 1, uuid4().bytes, 15.0, 0.0)

    async def give_back(params, handler):
        if state.held_count:
            state.lease_table.wipe(slot)
        handler.take([])

    async def ask_twice():
        backend: Any = SimpleNamespace(claim=give_back)
        claimer = claimer_of(state, backend)
        for _ in range(2):
            await claimer._feed()
            told.append(claimer.found_nothing.is_set())

    told: list[bool] = []
    asyncio.run(ask_twice())
    state.lease_table.close()

    assert told == [False, True]


def test_a_worker_is_known_while_it_is_there_and_said_to_be_gone_after(database, store):
    with working(database, name="seven", config=quick(jobs_max=3)):
        ((name, queues, jobs_max, stopped),) = rows(
            database, "select name, queues, jobs_max, stopped_at from faultline.workers"
        )
        assert (name, queues, jobs_max, stopped) == ("seven", ["default"], 3, None)

    assert rows(database, "select stopped_at >= started_at from faultline.workers") == [(True,)]
