"""Cases T2, C3, C9 and P12: a wrong clock, rows around the block, a cancel at every step, no watchdog."""

import asyncio
import os
import signal
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from faultline.errors import FaultlineError
from faultline.job import Job
from faultline.store import calls
from tests.support import enqueue, outcomes, state_of
from tests.worker.harness import drain, eventually, rows
from tests.worker.test_transaction import effects, steal

INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"

ANOTHER_DAY = """
import time
_clock = time.time
time.time = lambda: _clock() + {seconds}
time.time_ns = lambda: int(time.time() * 1e9)
"""


@pytest.mark.parametrize("days", [-1, 1])
def test_t2_a_worker_whose_clock_is_a_day_off_keeps_its_leases(database, store, real_worker, tmp_path, days):
    (tmp_path / "sitecustomize.py").write_text(ANOTHER_DAY.format(seconds=days * 86400))
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    real_worker(environment={"PYTHONPATH": path})

    job = enqueue(store, task="nap", args='{"seconds": 2.5}', max_attempts=1)
    eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]
    off = "select abs(extract(epoch from settled_at - clock_timestamp())) < 60 from faultline.ledger"
    assert rows(database, off) == [(True,)]


def test_c3_rows_committed_before_the_block_stay_when_the_job_is_lost(database, store):
    """Not promised, and shown here: what goes around job.complete is not fenced."""

    async def around(job: Job) -> None:
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as own:
            await own.execute(INSERT, [job.id, job.token, "around"])
        async with job.complete() as conn:
            await conn.execute(INSERT, [job.id, job.token, "inside"])
            await asyncio.to_thread(steal, database, job.id)

    job = enqueue(store, task="around")

    drain(database, around)

    assert effects(database) == ["around"]
    assert state_of(store, job) == "running"


STEPS = ["before the claim", "at its start", "in its block", "in its fenced block", "after its commit"]


@pytest.mark.parametrize("step", STEPS)
def test_c9_after_an_acknowledged_cancel_nothing_of_the_job_appears(database, store, step):
    acknowledged: list[bool] = []

    def cancel(job: int) -> None:
        try:
            store.run(calls.cancel(job))
        except FaultlineError:
            acknowledged.append(False)
        else:
            acknowledged.append(True)

    async def write(job: Job) -> None:
        later: Any = None
        if step == "at its start":
            await asyncio.to_thread(cancel, job.id)
        isolation = IsolationLevel.REPEATABLE_READ if step == "in its fenced block" else None
        async with job.complete(isolation=isolation) as conn:
            await conn.execute(INSERT, [job.id, job.token, "written"])
            if step == "in its block":
                await asyncio.to_thread(cancel, job.id)
            if (
                step == "in its fenced block"
            ):  # the cancel waits for our row, and is answered after our commit
                later = asyncio.create_task(asyncio.to_thread(cancel, job.id))
                await asyncio.sleep(0.3)
        if later:
            await later
        if step == "after its commit":
            await asyncio.to_thread(cancel, job.id)

    job = enqueue(store, task="write")
    if step == "before the claim":
        cancel(job)

    drain(database, write)

    expected = (["cancelled"], []) if acknowledged == [True] else (["succeeded"], ["written"])
    assert (outcomes(store, job), effects(database)) == expected
    assert acknowledged == [step in STEPS[:3]]


def test_p12_without_any_watchdog_nothing_is_wrong_only_late(database, store, real_worker):
    """An expired lease stays, so its worker may still commit; with a watchdog, the rest comes back."""
    worker = real_worker(watchdog=False)
    job = enqueue(store, task="nap", args='{"seconds": 60}')
    eventually(lambda: state_of(store, job) == "running")
    worker.end()
    eventually(
        lambda: rows(database, "select lease_until < faultline.now() from faultline.active") == [(True,)]
    )
    assert outcomes(store, job) == []

    real_worker()

    eventually(lambda: outcomes(store, job))
    assert outcomes(store, job) == ["expired"]


def test_x25_a_pacemaker_that_is_frozen_alone_is_replaced(database, store, real_worker):
    """It renews nothing, and it has not ended: without another, no long job could ever finish here."""
    worker = real_worker(seconds={"lease_for": 1.5})
    frozen = worker.pacemaker()
    job = enqueue(store, task="nap", args='{"seconds": 3}', max_attempts=1)
    eventually(lambda: state_of(store, job) == "running")

    os.kill(frozen, signal.SIGSTOP)

    eventually(lambda: state_of(store, job) == "succeeded")
    assert set(outcomes(store, job)) <= {"released", "succeeded"}
    assert worker.pacemaker() != frozen
