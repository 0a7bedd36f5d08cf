"""A handler that blocks the event loop is named, with its stack; threads beside it learn what they lost."""

import asyncio
import logging
import threading
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from faultline.job import Job
from faultline.metrics.event_counter import EventCounter
from faultline.store import calls
from faultline.telemetry import listen
from faultline.worker.execution import loop_stalls
from tests.support import TAKE_OVER, enqueue, outcomes, state_of
from tests.worker.harness import drain, eventually, execute, quick, working

BLOCKED = 1.6


@pytest.fixture
def told(caplog):
    """What was said about blocked loops so far."""
    caplog.set_level(logging.WARNING, logger="faultline.events")

    def facts():
        return [record.facts for record in caplog.records if getattr(record, "event", "") == "loop_blocked"]

    return facts


def wait_badly(seconds: float) -> None:
    time.sleep(seconds)


def test_a_handler_that_blocks_the_loop_is_named_with_its_stack(database, store, told):
    async def rude(job: Job) -> None:
        wait_badly(BLOCKED)

    job = enqueue(store, task="rude")
    drain(database, rude)

    assert len(told()) == 1
    (facts,) = told()
    assert (facts["job_id"], facts["task"], facts["attempt"]) == (job, "rude", 1)
    assert facts["seconds"] >= 1
    lines = facts["frames"].splitlines()
    assert "wait_badly" in lines[0]
    assert "time.sleep(seconds)" in lines[1]
    assert "rude" in lines[2]
    assert not any("faultline/worker" in line for line in lines)


def test_one_that_computes_is_named_too(database, store, told):
    async def computes() -> None:
        until = time.monotonic() + BLOCKED * 2
        while time.monotonic() < until:
            pass

    enqueue(store, task="computes")
    drain(database, computes)

    assert [facts["task"] for facts in told()] == ["computes"]


def test_one_that_kept_the_interpreters_lock_is_named_while_it_is_there(store, told, monkeypatch):
    """No look came through meanwhile: one suffices if the process computed in that time, and only then."""
    now, cpu, thread = [100.0], [5.0], threading.get_ident()
    task = SimpleNamespace(get_coro=lambda: None, get_context=dict)
    clock = SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: cpu[0])
    monkeypatch.setattr("faultline.worker.execution.loop_stalls.time", clock)
    monkeypatch.setattr(
        "faultline.worker.execution.loop_stalls.asyncio", SimpleNamespace(current_task=lambda loop: task)
    )
    state: Any = SimpleNamespace(lease_table=SimpleNamespace(ticked_at=lambda: 100.0), running=set())
    loop: Any = None
    watch = loop_stalls.LoopStalls(state, 1)

    now[0] = 103.0
    watch.look(loop, thread)
    assert told() == []  # the machine had no time for us, or all of us were stopped

    watch._suspect, now[0], cpu[0] = None, 106.0, 8.0
    watch.look(loop, thread)
    assert [facts["seconds"] for facts in told()] == [6.0]


def test_a_task_that_a_handler_started_is_named(database, store, told):
    async def part() -> None:
        time.sleep(BLOCKED)  # noqa: ASYNC251 - which is what is shown

    async def gathers() -> None:
        await asyncio.gather(part())

    enqueue(store, task="gathers")
    drain(database, gathers)

    (facts,) = told()
    assert "part" in facts["frames"].splitlines()[0]
    assert facts.get("task") == "gathers" or "part" in facts["coroutine"]


def test_it_is_told_once_a_minute(database, store, told):
    async def rude() -> None:
        time.sleep(BLOCKED)  # noqa: ASYNC251

    for _ in range(2):
        enqueue(store, task="rude")
    drain(database, rude, config=quick(jobs_max=1))

    assert len(told()) == 1


def counted(counting: EventCounter) -> dict[tuple[str, ...], Any]:
    return dict(counting.figures.snapshot()["loop_blocked_seconds"])


def test_its_seconds_are_counted_all_the_same(database, store, monkeypatch):
    monkeypatch.setattr(loop_stalls, "TOLD_EVERY", 3600.0)
    counting = EventCounter()
    stop = listen(counting)

    async def rude() -> None:
        time.sleep(BLOCKED)  # noqa: ASYNC251

    try:
        for _ in range(2):
            enqueue(store, task="rude")
        drain(database, rude, config=quick(jobs_max=1))
    finally:
        stop()

    (seconds,) = [told for labels, told in counted(counting).items() if labels == ("rude",)]
    assert seconds > 2.0


def test_a_handler_that_waits_as_it_should_is_not_named(database, store, told):
    async def polite() -> None:
        await asyncio.sleep(BLOCKED)

    def in_thread() -> None:
        time.sleep(BLOCKED)

    enqueue(store, task="polite")
    enqueue(store, task="in_thread")
    drain(database, polite, in_thread)

    assert told() == []


def lost_beside_a_blocked_loop(database, store, seconds):
    """A plain handler looks at job.lost while another blocks the loop, and its job is taken away."""
    learnt: list[float] = []

    def looks(job: Job) -> str:
        until = time.monotonic() + 60
        while not job.lost and time.monotonic() < until:
            time.sleep(0.01)
        learnt.append(time.monotonic())
        return "stopped early"

    async def rude() -> None:
        time.sleep(seconds)  # noqa: ASYNC251

    config = quick(lease_for=timedelta(seconds=1.5))
    with working(database, looks, rude, config=config, watchdog=False):
        job = enqueue(store, task="looks")
        eventually(lambda: state_of(store, job) == "running")
        rude_one = enqueue(store, task="rude")
        eventually(lambda: state_of(store, rude_one) == "running")
        began = time.monotonic()
        execute(database, TAKE_OVER, job)
        eventually(lambda: outcomes(store, rude_one), 60)
        eventually(lambda: learnt)
    return job, learnt[0] - began


def test_a_thread_learns_that_its_job_is_lost_while_the_loop_is_blocked(database, store):
    _, after = lost_beside_a_blocked_loop(database, store, 12)

    assert after < 11


def test_a_thread_that_returns_early_for_that_has_not_succeeded(database, store):
    job, _ = lost_beside_a_blocked_loop(database, store, 6)

    assert store.run(calls.refusals(job)) == []  # nothing was said in its name
    assert outcomes(store, job) == ["expired"]
