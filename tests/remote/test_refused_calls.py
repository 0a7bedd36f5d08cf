"""The database behind a server refuses: the worker waits, and a success stays one."""

from datetime import timedelta
from functools import partial

import pytest

from faultline.job import Job
from faultline.store import calls
from tests.remote.harness import working
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import eventually, execute, quick
from tests.worker.refusing import Refusing, succeeded

STATES = ("42501", "54000", "XX000", "P0001", "0A000", "25000", "3D000", "22003")


@pytest.fixture
def refusing(database):
    """A database whose verbs refuse while they are told to; afterwards it is as the other tests want it."""
    yield Refusing(database, "claim", "complete_many", "complete")
    execute(database, "truncate public.refusing")


def test_what_the_database_behind_a_server_refuses_is_waited_out(store, served, refusing):
    runs: list[int] = []

    async def works(job: Job) -> None:
        runs.append(job.id)

    with working(served, works, config=quick(jobs_max=10, lease_for=timedelta(minutes=5))) as worker:
        for state in STATES:
            refusing.refuse(state, "claim")
            job = enqueue(store, task="works", max_attempts=1)
            refusing.wait_said()
            refusing.relent()
            eventually(partial(succeeded, store, job))
            assert worker.code is None, state

        runs.clear()
        jobs = store.run(calls.enqueue_many([new_job(task="works", max_attempts=1)] * len(STATES)))
        refusing.refuse_each(dict(zip(jobs, STATES, strict=True)), "complete_many", "complete")
        eventually(lambda: len(runs) == len(jobs))
        refusing.wait_said(2 * len(STATES))
        refusing.relent()
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))

    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * len(jobs)
    assert sorted(runs) == sorted(jobs)
