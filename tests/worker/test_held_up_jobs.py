"""Time that a job loses in its worker, to a late claim or a blocked loop, is no timeout of its handler."""

import asyncio
import time
from datetime import timedelta

import psycopg
import pytest

from faultline.config import WorkerConfig
from faultline.job import Job
from faultline.task import TaskSpec, spec_of
from tests.support import enqueue, outcomes
from tests.worker import children_app as shop
from tests.worker.harness import eventually, execute, quick, working

TIMEOUT = timedelta(seconds=2)
TOO_LONG = 3.0


async def in_loop(job: Job) -> None:
    """Long enough to be stopped, had it no time left."""
    for _ in range(5):
        await asyncio.sleep(0.1)


def in_thread(job: Job) -> None:
    time.sleep(0.5)


async def block(job: Job) -> None:
    time.sleep(TOO_LONG)  # noqa: ASYNC251 - which is what is shown


async def block_and_wait(job: Job) -> None:
    """Its own call takes its time, which costs it the attempt."""
    time.sleep(TOO_LONG)  # noqa: ASYNC251
    await asyncio.sleep(60)


TASKS = (in_loop, in_thread, block, block_and_wait)


def tasks() -> list[TaskSpec]:
    return [*map(spec_of, TASKS), *(spec for spec in shop.app.registry if spec.name == "add")]


def job_of(task: str) -> dict[str, str]:
    return {"task": task, "args": '{"first": 1}' if task == "add" else "{}"}


def settled(store, *jobs):
    """Each job's outcomes, once none of them runs."""
    eventually(lambda: all(outcomes(store, job)[-1:] in (["succeeded"], ["dead"]) for job in jobs))
    return [outcomes(store, job)[-1] for job in jobs]


@pytest.mark.parametrize("task", ["in_loop", "in_thread", "add"])
def test_a_claim_that_is_answered_late_costs_no_attempt(database, store, task):
    """The claim waits for a lock for longer than the job's timeout; then the job has its whole time."""
    with working(database, *tasks()):
        with psycopg.connect(database) as conn:
            conn.execute("lock table faultline.active in access exclusive mode")
            (job,) = conn.execute(
                "select faultline.enqueue(%(task)s, %(args)s, max_attempts => 1, timeout => %(timeout)s)",
                {**job_of(task), "timeout": TIMEOUT},
            ).fetchone()
            execute(database, "select faultline.wake('default')")
            time.sleep(TOO_LONG)

        assert settled(store, job) == ["succeeded"]


@pytest.mark.parametrize("task", ["in_loop", "in_thread", "add"])
def test_a_blocked_loop_costs_no_job_that_was_claimed_with_the_blocker(database, store, task):
    first = enqueue(store, task="block", max_attempts=1)
    jobs = [enqueue(store, **job_of(task), max_attempts=1, timeout=TIMEOUT) for _ in range(3)]

    with working(database, *tasks()):
        assert settled(store, first, *jobs) == ["succeeded"] * 4


def test_a_thread_that_returned_while_the_loop_was_blocked_has_succeeded(database, store):
    job = enqueue(store, **job_of("in_thread"), max_attempts=1, timeout=TIMEOUT)
    blocker = enqueue(store, task="block", max_attempts=1)

    with working(database, *tasks()):
        assert settled(store, job, blocker) == ["succeeded"] * 2
    assert outcomes(store, job) == ["succeeded"]


@pytest.mark.parametrize("task", ["in_loop", "add"])
def test_a_job_that_a_neighbour_kept_from_its_work_costs_no_attempt(database, store, task):
    """A coroutine that has begun, and a job whose process is being started, while the loop is blocked."""
    job = enqueue(store, **job_of(task), max_attempts=1, timeout=TIMEOUT)
    blocker = enqueue(store, task="block", max_attempts=1)

    with working(database, *tasks()):
        assert settled(store, job, blocker) == ["succeeded"] * 2


def test_a_handler_that_blocks_the_loop_past_its_own_timeout_has_failed(database, store):
    job = enqueue(store, task="block_and_wait", max_attempts=1, timeout=TIMEOUT)

    with working(database, *tasks()):
        assert settled(store, job) == ["dead"]
    assert outcomes(store, job) == ["dead"]


def test_a_handler_that_waits_for_a_thread_until_its_time_is_over_costs_no_attempt(database, store):
    def hold(job: Job) -> None:
        time.sleep(5)

    holder = enqueue(store, task="hold", max_attempts=1)
    job = enqueue(store, task="in_thread", max_attempts=1, timeout=timedelta(seconds=4))
    config: WorkerConfig = quick(threads_max=1)

    with working(database, *tasks(), spec_of(hold), config=config):
        assert settled(store, holder, job) == ["succeeded"] * 2
    assert outcomes(store, job)[0] == "released"
