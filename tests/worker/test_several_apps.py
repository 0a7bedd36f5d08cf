"""Several apps on one queue: a worker claims only what it knows, and no app delays another's jobs."""

import contextlib
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.store import calls
from faultline.store.pool import Store
from faultline.task import TaskSpec, spec_of
from faultline.watchdog import unknown_tasks
from faultline.worker.claiming import known_tasks
from tests.conftest import a_database
from tests.servers import Server
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import eventually, rows, working

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


@pytest.mark.parametrize("many", [8, 9, 500])
def test_a_worker_knows_few_or_many_tasks(database, store, many):
    known = [spec_of(_nothing, name=f"task_{number}") for number in range(many)]
    jobs = [enqueue(store, task=f"task_{number}") for number in (0, many - 1, many)]
    with working(database, *known):
        eventually(lambda: [state_of(store, job) for job in jobs[:2]] == ["succeeded"] * 2)

    assert state_of(store, jobs[2]) == "queued"
    assert outcomes(store, jobs[2]) == []


async def _nothing() -> None: ...


@pytest.fixture
def second_database(server: Server, template: str) -> Iterator[str]:
    yield from a_database(server, template)


def test_apps_in_two_databases_of_one_server_share_nothing(database, store, second_database):
    """The same task and the same key: each app runs its own job, under its own first token."""
    done: list[str] = []

    def app(name: str) -> TaskSpec:
        async def send() -> None:
            done.append(name)

        return spec_of(send)

    with contextlib.closing(Store(second_database)) as second:
        jobs = [(each, enqueue(each, task="send", key="k")) for each in (store, second)]
        with working(database, app("one")):
            eventually(lambda: state_of(*jobs[0]) == "succeeded")
            assert state_of(*jobs[1]) == "queued"
            with working(second_database, app("two")):
                eventually(lambda: state_of(*jobs[1]) == "succeeded")
        assert [len(each.run(calls.list_workers(gone=True))) for each, _ in jobs] == [1, 1]

    assert done == ["one", "two"]
