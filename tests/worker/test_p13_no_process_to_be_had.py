"""P13: where no process can be started, a job that needs one is given back, and waits longer each time."""

import asyncio
import errno
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from faultline.outcome import Snooze
from faultline.store import calls
from faultline.worker.processes import child_pool
from faultline.worker.processes.child_handle import ChildNotStarted
from faultline.worker.processes.child_process import ChildProcess
from tests.support import enqueue, outcomes, state_of
from tests.worker import suspects_app as shop
from tests.worker.harness import eventually, execute, quick, short, working

HURRY = "update faultline.later set run_at = clock_timestamp()"


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What fork says under `ulimit -u`, as long as the list is not empty."""
    refusing = [True]
    usual = ChildProcess.__init__

    def refused(self: ChildProcess) -> None:
        if refusing:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        usual(self)

    monkeypatch.setattr(ChildProcess, "__init__", refused)
    return refusing


def has_ended(store: Any, job: int, times: int) -> bool:
    return len(outcomes(store, job)) >= times


def hurried(database: str, store: Any, job: int) -> str | None:
    execute(database, HURRY)
    return state_of(store, job)


@pytest.mark.parametrize("task", ["innocent", "innocent_in_process"])
def test_the_job_is_given_back_waits_longer_each_time_and_runs_at_last(
    database, store, no_process, caplog, task
):
    job = enqueue(store, task=task, max_attempts=2)
    execute(database, "update faultline.active set crashes = 1")

    with working(database, *shop.app.registry, config=short()):
        for times in (1, 2, 3):
            eventually(partial(has_ended, store, job, times))
            execute(database, HURRY)
        no_process.clear()
        eventually(lambda: hurried(database, store, job) == "succeeded")

    *before, last = store.run(calls.history(job))
    assert {entry.outcome for entry in before} == {"snoozed"}
    assert all("no child process could be started" in entry.error for entry in before)
    assert (last.outcome, last.attempt) == ("succeeded", 1)
    told = [record.getMessage() for record in caplog.records if "no child process" in record.message]
    assert [line.split("waits for ")[1].split(" s")[0] for line in told[:3]] == ["1", "2", "4"]


def test_the_wait_never_grows_past_a_minute(no_process):
    async def put_off() -> timedelta:
        unused: Any = None
        some = child_pool.ChildPool(quick(), unused, {}, unused, unused, 1)
        some._refused_times = 1_000_000
        attempt: Any = type("Attempt", (), {"job": type("Job", (), {"id": 1, "task": "t"})})
        outcome = some._put_off(attempt, ChildNotStarted("none"))
        assert isinstance(outcome, Snooze)
        return outcome.delay

    assert asyncio.run(put_off()) == timedelta(minutes=1)
