"""A process can be killed: at its deadline, with its lease, with its worker; and no other job is hurt."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from faultline.store import calls
from faultline.worker.processes import child_handle, child_pool
from tests.support import TAKE_OVER, enqueue, new_job, outcomes, state_of
from tests.worker import children_app as shop
from tests.worker.harness import attempt_of, eventually, execute, is_alive, quick, rows, working
from tests.worker.harness import children as processes_of

ONE = quick(jobs_max=1)
FAULTLINE = (sys.executable, "-m", "faultline")
OPTIONS = ("--children", "2", "--lease", "1s", "--grace", "20s")
OPEN = "select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"


def notes(dsn: str, job: int) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from notes where job_id = %s order by at", job)]


def pid_of(dsn: str, job: int) -> int:
    """The process that has begun this job."""
    return int(eventually(lambda: notes(dsn, job))[0])


def test_at_its_deadline_a_handler_is_killed_and_its_attempt_has_failed(database, store):
    job = enqueue(store, task="spin", max_attempts=1)

    with working(database, *shop.app.registry) as worker:
        pid = pid_of(database, job)
        assert is_alive(pid)
        attempt_of(worker, job).timeout_at = 0.0
        eventually(lambda: not is_alive(pid))
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["dead"]
    assert "ran into its timeout" in store.run(calls.get(job)).error
    assert "ended" not in notes(database, job)


def test_a_lost_lease_kills_the_handler(database, store):
    job = enqueue(store, task="spin")

    with working(database, *shop.app.registry, watchdog=False):
        pid = pid_of(database, job)
        execute(database, TAKE_OVER, job)
        eventually(lambda: not is_alive(pid))

    assert outcomes(store, job) == ["expired"]
    assert state_of(store, job) == "running"


def test_a_cancelled_job_is_killed(database, store):
    job = enqueue(store, task="spin")

    with working(database, *shop.app.registry):
        pid = pid_of(database, job)
        store.run(calls.cancel(job, "not wanted"))
        eventually(lambda: not is_alive(pid))

    assert state_of(store, job) == "cancelled"
    assert outcomes(store, job) == ["cancelled"]


def test_when_the_grace_is_over_a_handler_is_killed_and_its_attempt_given_back(database, store):
    job = enqueue(store, task="spin")

    with working(database, *shop.app.registry, config=quick(grace=timedelta(seconds=0.2))) as worker:
        pid = pid_of(database, job)
        assert worker.leave() == 0
        assert not is_alive(pid)

    assert outcomes(store, job) == ["released"]
    assert store.run(calls.get(job)).attempt == 0


def test_within_the_grace_a_handler_may_finish(database, store):
    job = enqueue(store, task="nap", args='{"seconds": 1}')

    with working(database, *shop.app.registry) as worker:
        eventually(lambda: notes(database, job))
        assert worker.leave() == 0

    assert outcomes(store, job) == ["succeeded"]


def test_what_the_handler_has_started_is_killed_with_it(database, store):
    job = enqueue(store, task="family")

    with working(database, *shop.app.registry):
        eventually(lambda: len(notes(database, job)) == 2)
        pids = [int(said) for said in notes(database, job)]
        assert all(is_alive(pid) for pid in pids)
        store.run(calls.cancel(job))
        eventually(lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("close all", "ended with exit code 87"),
        ("exit", "ended with exit code 7"),
        ("signal", "was killed by SIGKILL; the kernel does that when memory runs out"),
        ("segfault", "was killed by SIGSEGV"),
        ("with a fork", "ended with exit code 7"),
    ],
)
def test_a_process_that_dies_is_a_failed_attempt_that_says_how(database, store, how, told):
    job = enqueue(store, task="die", args=f'{{"how": "{how}"}}')

    with working(database, *shop.app.registry):
        eventually(lambda: state_of(store, job) == "succeeded")

    first, second = store.run(calls.history(job))
    assert (first.outcome, second.outcome) == ("failed", "succeeded")
    assert first.error.startswith(f"HandlerDied: the process of job {job} (die) {told}")
    assert store.run(calls.get(job)).crashes == 1
    before, after = notes(database, job)
    assert before != after


def test_a_process_that_speaks_nonsense_is_killed(database, store):
    job = enqueue(store, task="babble")

    with working(database, *shop.app.registry):
        eventually(lambda: state_of(store, job) == "succeeded")

    first, second = store.run(calls.history(job))
    assert (first.outcome, second.outcome) == ("failed", "succeeded")
    assert "was killed: it spoke nonsense to the worker" in first.error
    assert not is_alive(int(notes(database, job)[0]))


def test_an_idle_process_that_dies_costs_no_attempt(database, store):
    with working(database, *shop.app.registry, config=quick(jobs_max=1)):
        first = enqueue(store, task="pid")
        pid = eventually(lambda: store.run(calls.get(first)).result)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid))
        jobs = [enqueue(store, task="pid") for _ in range(3)]
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))

    history = [store.run(calls.history(job)) for job in jobs]
    assert [store.run(calls.get(job)).attempt for job in jobs] == [1] * 3, history
    # On a busy machine the next process may be slow to come: then a job is put off, its attempt given back.
    assert {outcome for job in jobs for outcome in outcomes(store, job)} <= {"succeeded", "snoozed"}


def test_a_process_that_dies_before_it_has_begun_a_job_costs_that_nothing(database, store):
    """It was idle when it was given the job: whatever killed it, the handler did not."""
    with working(database, *shop.app.registry, config=quick(jobs_max=1)):
        first = enqueue(store, task="pid")
        pid = eventually(lambda: store.run(calls.get(first)).result)
        os.kill(pid, signal.SIGSTOP)
        job = enqueue(store, task="pid")
        eventually(lambda: state_of(store, job) == "running")
        time.sleep(0.5)  # by now it was told of the job, which it cannot hear
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: state_of(store, job) == "succeeded")

    info = store.run(calls.get(job))
    assert outcomes(store, job) == ["snoozed", "succeeded"]
    assert (info.attempt, info.crashes) == (1, 0)


def test_no_other_job_is_hurt_when_a_process_dies(database, store):
    others = store.run(calls.enqueue_many([new_job(task="nap", args='{"seconds": 1.5}')] * 2))

    with working(database, *shop.app.registry, config=quick(jobs_max=4, children_max=3)) as worker:
        eventually(lambda: all(notes(database, job) for job in others))
        dying = enqueue(store, task="die", args='{"how": "signal"}')
        eventually(lambda: state_of(store, dying) == "succeeded")
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in others))
        assert worker.leave() == 0

    assert [outcomes(store, job) for job in others] == [["succeeded"]] * 2


def test_a_handler_that_looks_at_job_lost_ends_by_itself_and_keeps_its_process(database, store, monkeypatch):
    monkeypatch.setattr(child_handle, "STOP_WAIT", 30.0)
    job = enqueue(store, task="polite")

    with working(database, *shop.app.registry, config=ONE):
        pid = pid_of(database, job)
        store.run(calls.cancel(job))
        eventually(lambda: "lost: True" in notes(database, job))
        after = enqueue(store, task="pid")
        assert eventually(lambda: store.run(calls.get(after)).result) == pid

    assert outcomes(store, job) == ["cancelled"]


def test_an_async_handler_is_cancelled_before_it_is_killed(database, store, monkeypatch):
    monkeypatch.setattr(child_handle, "STOP_WAIT", 30.0)
    job = enqueue(store, task="polite_async")

    with working(database, *shop.app.registry, config=ONE):
        pid = pid_of(database, job)
        store.run(calls.cancel(job))
        eventually(lambda: "cancelled" in notes(database, job))
        after = enqueue(store, task="pid")
        assert eventually(lambda: store.run(calls.get(after)).result) == pid


def test_a_job_that_waits_long_for_a_child_is_given_back_with_its_attempt(database, store, monkeypatch):
    """Its time runs: were it begun at last, it would be killed for having waited."""
    monkeypatch.setattr(child_pool, "WAIT_SHARE", 0.3 / 3600)
    config = quick(lease_for=timedelta(seconds=3), jobs_max=2, children_max=1)
    with working(database, *shop.app.registry, config=config):
        first = enqueue(store, task="spin")
        pid_of(database, first)
        waiting = enqueue(store, task="pid", max_attempts=1)
        eventually(lambda: "released" in outcomes(store, waiting))
        store.run(calls.cancel(first))
        eventually(lambda: state_of(store, waiting) == "succeeded")

    *given_back, last = outcomes(store, waiting)
    assert set(given_back) == {"released"}
    assert last == "succeeded"


# with its worker


@pytest.fixture
def process(database: str, store: Any) -> Any:
    """A worker of the app in a process of its own, as the command line starts it."""
    worker = subprocess.Popen(
        [*FAULTLINE, "--dsn", database, "worker", "tests.worker.children_app:app", *OPTIONS],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    yield worker
    worker.kill()
    worker.wait()


def test_children_die_with_a_worker_that_is_killed(database, store, process):
    """Even one whose handler lets no other thread of its process run, which so cannot see the line's end."""
    busy, idle = enqueue(store, task="backtrack"), enqueue(store, task="pid")
    pid = pid_of(database, busy)
    pids = [pid, eventually(lambda: store.run(calls.get(idle)).result)]
    assert all(is_alive(pid) for pid in pids)

    process.kill()
    process.wait()

    eventually(lambda: not any(is_alive(pid) for pid in pids))
    assert "ended" not in notes(database, busy)


def test_a_signal_to_every_process_of_a_service_lets_the_handler_finish(database, store, process):
    job = enqueue(store, task="nap", args='{"seconds": 2}')
    eventually(lambda: notes(database, job))
    (child,) = eventually(
        lambda: [pid for pid in processes_of(process.pid) if b"child_main" in _command(pid)]
    )

    os.kill(child, signal.SIGTERM)
    os.kill(child, signal.SIGINT)
    process.terminate()

    assert process.wait(30) == 0
    assert outcomes(store, job) == ["succeeded"]
    assert not is_alive(child)


def test_a_frozen_worker_loses_the_job_and_its_child_cannot_commit(database, store, process):
    """The child runs on, but it asks its worker before it commits, and the fence stands behind that.

    Its pacemaker, which would end it, is frozen too: but not the child.
    """
    job = enqueue(store, task="write", args='{"then": "wait"}', max_attempts=5)
    pid = pid_of(database, job)
    family = [process.pid, *(one for one in processes_of(process.pid) if b"pacemaker" in _command(one))]
    assert len(family) == 2
    for one in family:
        os.kill(one, signal.SIGSTOP)
    try:
        with working(database, *shop.app.registry):
            eventually(lambda: state_of(store, job) == "succeeded")
            assert is_alive(pid)
            assert rows(database, OPEN)
    finally:
        for one in family:
            os.kill(one, signal.SIGCONT)

    eventually(lambda: not rows(database, OPEN))
    assert rows(database, "select count(*) from effects where job_id = %s", job) == [(1,)]
    assert outcomes(store, job) == ["expired", "succeeded"]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
