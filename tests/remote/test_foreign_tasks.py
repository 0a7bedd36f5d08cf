"""Two apps on one queue whose workers name no tasks, over a server: each leaves the other's tasks to it."""

import logging

import pytest

from faultline.store import calls
from tests.remote.harness import Served, working
from tests.support import enqueue, outcomes
from tests.worker import harness
from tests.worker.harness import eventually, rows
from tests.worker.test_foreign_tasks import (
    _no_tasks_named,
    check_each_learns_what_is_not_its_own,
    ours,
    patient,
    theirs,
)

__all__ = ["_no_tasks_named", "patient"]


@pytest.mark.parametrize("beside", ["over a server", "on the database"])
def test_two_apps_on_one_queue_put_off_none_of_each_others_jobs(patient, served, store, caplog, beside):
    caplog.set_level(logging.WARNING)
    at_work = working(served, theirs) if beside == "over a server" else harness.working(served.dsn, theirs)
    with working(served, ours) as one, at_work as other:
        check_each_learns_what_is_not_its_own(served.dsn, store, one, other)

    told = [record.getMessage() for record in caplog.records if "no task" in record.getMessage()]
    assert sorted(line.split()[2] for line in told) == ["ours", "theirs"]


def test_where_no_other_worker_serves_the_queue_its_job_is_put_off(served: Served, store):
    """A worker alone with it looks again by itself: there is none to leave it to."""
    job = enqueue(store, task="theirs")
    with working(served, ours):
        eventually(lambda: outcomes(store, job) == ["snoozed"])

    assert rows(served.dsn, "select count(*) from faultline.later") == [(1,)]
    assert store.run(calls.get(job)).attempt == 0
