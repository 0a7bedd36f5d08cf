"""Workers that name no tasks (of an earlier release, or with too many): they meet jobs that they do not know.

Each leaves them to the app that knows them, and says so.
"""

import logging
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest

from faultline.store import calls
from faultline.store.pool import Store
from faultline.worker.claiming import known_tasks, unserved_tasks
from faultline.worker.claiming.unserved_tasks import LEFT_MAX, UnservedTasks
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import InProcess, eventually, quick, rows, working


@pytest.fixture(autouse=True)
def _no_tasks_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_tasks, "TASKS_MAX", 0)


GIVEN_BACK = "select count(*) from faultline.ledger where outcome = 'snoozed'"


def all_succeeded(store: Store, jobs: list[int]) -> bool:
    return {state_of(store, job) for job in jobs} == {"succeeded"}


async def ours() -> None: ...


async def theirs() -> None: ...


def have_done_a_round(database: str, store: Store) -> int:
    """Have jobs of both apps done, side by side in one line; how many were given back so far."""
    jobs: list[int] = []
    for task in ("ours", "theirs") * 5:
        jobs = [*jobs, *store.run(calls.enqueue_many([new_job(task=task)] * 4))]
    eventually(partial(all_succeeded, store, jobs))
    assert rows(database, "select count(*) from faultline.later") == [(0,)]
    return int(rows(database, GIVEN_BACK)[0][0])


def check_each_learns_what_is_not_its_own(database: str, store: Store, *apps: InProcess) -> None:
    """Of two apps at work each gives some jobs back, and then no more; none of them waits."""
    for _ in range(50):
        have_done_a_round(database, store)
        if all(app.worker._state.unfit.names() for app in apps):
            break
    # Once more: claims were on their way that excepted nothing.
    given_back = [have_done_a_round(database, store) for _ in range(4)]

    assert [app.worker._state.unfit.names() for app in apps] == [("theirs",), ("ours",)]
    assert given_back[1:] == given_back[:1] * 3
    assert given_back[0] > 0
    assert rows(database, "select max(attempt) from faultline.ledger") == [(1,)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learnt and told holds for the test, however slow the machine is."""
    monkeypatch.setattr(unserved_tasks, "LEFT_FOR", 600.0)
    monkeypatch.setattr(unserved_tasks, "TOLD_EVERY", 600.0)


def test_two_apps_on_one_queue_put_off_none_of_each_others_jobs(patient, database, store, caplog):
    """Each learns once which tasks are not its own; none of their jobs waits for that."""
    caplog.set_level(logging.WARNING)
    with working(database, ours, config=quick()) as one, working(database, theirs, config=quick()) as other:
        check_each_learns_what_is_not_its_own(database, store, one, other)

    told = [record.getMessage() for record in caplog.records if "no task" in record.getMessage()]
    assert sorted(line.split()[2] for line in told) == ["ours", "theirs"]


def test_a_mistyped_task_is_told_and_holds_up_no_other_job(database, store, caplog):
    caplog.set_level(logging.WARNING)
    lost = [enqueue(store, task="uors") for _ in range(10)]
    with working(database, ours), working(database, ours):
        jobs = [enqueue(store, task="ours") for _ in range(10)]
        eventually(lambda: {state_of(store, job) for job in jobs} == {"succeeded"})
        eventually(lambda: all(outcomes(store, job) for job in lost))
        eventually(lambda: rows(database, "select 1 from faultline.active where claim is null limit 1"))

    assert {state_of(store, job) for job in lost} == {"queued"}
    assert {store.run(calls.get(job)).attempt for job in lost} == {0}
    told = [record.getMessage() for record in caplog.records if "no task uors" in record.getMessage()]
    assert 1 <= len(told) <= 2  # once a minute for each worker that met one: a claim may take all ten
    assert "default" in told[0]


def test_a_claim_leaves_the_tasks_it_excepts(store):
    ids = [enqueue(store, task=task) for task in ("known", "unknown", "known")]
    call = calls.claim(
        ["default"], 10, lease=timedelta(seconds=15), claim=uuid4(), except_tasks=["unknown", "other"]
    )

    assert sorted(job.id for job in store.run(call)) == [ids[0], ids[2]]


def test_only_so_many_tasks_are_excepted():
    left = UnservedTasks()

    assert [left.leave(f"task{number}") for number in range(LEFT_MAX + 1)] == [True] * LEFT_MAX + [False]
    assert len(left.names()) == LEFT_MAX


def test_a_name_that_no_task_can_have_is_not_excepted():
    """Of a damaged row: a server refuses an Ask that names it, so its job is put off."""
    left = UnservedTasks()

    assert not left.leave("no; name")
    assert left.names() == ()
