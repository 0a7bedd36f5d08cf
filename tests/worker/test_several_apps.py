"""Several apps on one queue: a worker claims only what it knows, and no app delays another's jobs."""

import contextlib
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from faultline.store import calls
from faultline.task import spec_of
from faultline.watchdog import unknown_tasks
from faultline.worker.claiming import known_tasks
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import eventually, quick, rows, working

APP = Path(__file__).with_name("two_apps.py")

BEGIN_WITHIN = 10.0
"""Seconds for 20 jobs that do nothing: hundreds of times what they need."""


@contextlib.contextmanager
def an_app(dsn: str, task: str) -> Iterator[None]:
    """The worker of an app with one task, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.worker.two_apps", dsn, task], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_two_apps_on_one_queue_do_not_delay_each_others_jobs(database, store):
    """The app that starts later finds its jobs where they were enqueued, each without any other lease."""
    with an_app(database, "ours"):
        jobs = [enqueue(store, task=task) for task in ("theirs", "ours") * 20]
        eventually(lambda: {state_of(store, job) for job in jobs[1::2]} == {"succeeded"})
        with an_app(database, "theirs"):
            began = time.monotonic()
            eventually(lambda: {state_of(store, job) for job in jobs} == {"succeeded"})

    assert time.monotonic() - began < BEGIN_WITHIN
    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * 40


def test_a_task_of_a_module_that_is_imported_later_is_claimed(database, store, monkeypatch):
    monkeypatch.setattr(known_tasks, "LOOK_SECONDS", 0.01)

    async def ours() -> None: ...

    async def later() -> None: ...

    job = enqueue(store, task="later")
    with working(database, ours) as app:
        app.worker.tasks.add(spec_of(later))
        eventually(lambda: state_of(store, job) == "succeeded")

    assert outcomes(store, job) == ["succeeded"]


def test_a_worker_with_too_many_tasks_names_none_and_gives_back_what_it_does_not_know(
    database, store, monkeypatch
):
    monkeypatch.setattr(known_tasks, "TASKS_MAX", 0)

    async def ours() -> None: ...

    mine, other = enqueue(store, task="ours"), enqueue(store, task="theirs")
    with working(database, ours):
        eventually(lambda: state_of(store, mine) == "succeeded")
        eventually(lambda: outcomes(store, other))

    assert outcomes(store, other)[0] == "snoozed"
    assert rows(database, "select count(*) from faultline.known_tasks") == [(0,)]


def test_a_mistyped_task_is_told_once_with_who_may_know_it(database, store, caplog, monkeypatch):
    """Its job is not claimed, and the jobs behind it run."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(unknown_tasks, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(unknown_tasks, "WAITED_MIN", 0.0)

    async def ours() -> None: ...

    lost = enqueue(store, task="uors")
    jobs = store.run(calls.enqueue_many([new_job(task="ours")] * 20))
    with working(database, ours), working(database, ours):
        eventually(lambda: {state_of(store, job) for job in jobs} == {"succeeded"})
        told = eventually(lambda: [line for line in caplog.messages if "the task uors" in line])
        eventually(lambda: rows(database, "select 1 from faultline.active where unknown_since is not null"))

    assert outcomes(store, lost) == []
    assert told == [
        "no running worker of queue default knows the task uors, 1 job wait: no worker seen lately knew it; "
        "correct the name where it is enqueued, or start the worker of its app. After a day they are dead"
    ]


def test_a_job_without_a_wake_up_behind_another_apps_job_is_found_soon(database, store, db):
    """The first free job of the lane stays the same: the watchdog looks at the last one too."""

    async def ours() -> None: ...

    enqueue(store, task="theirs")
    with working(database, ours, config=quick(idle_poll_every=timedelta(minutes=5))):
        eventually(lambda: rows(database, "select 1 from faultline.rounds where leads_until > now()"))
        time.sleep(2)  # until the first one is announced, and the worker has looked
        db.execute("select faultline.enqueue('ours')")
        eventually(lambda: rows(database, "select 1 from faultline.ledger where task = 'ours'"))


@pytest.mark.parametrize("many", [8, 9, 500])
def test_a_worker_knows_few_or_many_tasks(database, store, many):
    known = [spec_of(_nothing, name=f"task_{number}") for number in range(many)]
    jobs = [enqueue(store, task=f"task_{number}") for number in (0, many - 1, many)]
    with working(database, *known):
        eventually(lambda: [state_of(store, job) for job in jobs[:2]] == ["succeeded"] * 2)

    assert state_of(store, jobs[2]) == "queued"
    assert outcomes(store, jobs[2]) == []


async def _nothing() -> None: ...
