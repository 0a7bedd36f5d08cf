"""Two apps on one queue, and names that nobody knows: left to those who know them, and told."""

import logging
from datetime import timedelta
from functools import partial
from uuid import uuid4

from faultline.store import calls
from faultline.store.run import Store
from faultline.worker.unfit import LEFT_MAX, Unfit
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import eventually, quick, rows, working

GIVEN_BACK = "select count(*) from faultline.ledger where outcome = 'snoozed'"


def all_succeeded(store: Store, jobs: list[int]) -> bool:
    return {state_of(store, job) for job in jobs} == {"succeeded"}


async def ours() -> None: ...


async def theirs() -> None: ...


def test_two_apps_on_one_queue_put_off_none_of_each_others_jobs(database, store, caplog):
    """Each learns once which tasks are not its own; none of their jobs waits for that."""
    caplog.set_level(logging.WARNING)
    given_back: list[int] = []
    with working(database, ours, config=quick()), working(database, theirs, config=quick()):
        for _ in range(6):
            kinds = [new_job(task=task) for task in ("ours", "theirs") for _ in range(20)]
            jobs = store.run(calls.enqueue_many(kinds))
            eventually(partial(all_succeeded, store, jobs))
            assert rows(database, "select count(*) from faultline.later") == [(0,)]
            given_back += rows(database, GIVEN_BACK)[0]

    assert given_back[2:] == given_back[2:3] * 4  # after the first rounds no more
    assert rows(database, "select max(attempt) from faultline.ledger") == [(1,)]
    told = [record.getMessage() for record in caplog.records if "no task" in record.getMessage()]
    assert 1 <= len(told) <= 2
    assert all("ours" in line or "theirs" in line for line in told)


def test_a_mistyped_task_is_told_and_keeps_nobody_from_the_others(database, store, caplog):
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
    unfit = Unfit()

    assert [unfit.leave(f"task{number}") for number in range(LEFT_MAX + 1)] == [True] * LEFT_MAX + [False]
    assert len(unfit.names()) == LEFT_MAX
