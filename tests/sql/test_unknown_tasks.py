"""Tasks that workers name: what their claims take, and what becomes of jobs that none of them knows."""

from datetime import timedelta

import pytest

from faultline.errors import BadName, OutOfBounds
from faultline.store import calls
from tests.support import LEASE, claim_many, enqueue, outcomes, state_of, worker_named


def knowing(store, name, *tasks, queues=("default",)):
    worker = store.run(calls.worker_started(name, "host", 1, list(queues), 10, "0"))
    store.run(calls.know_tasks(worker, tasks))
    return worker


def beat(store, *workers):
    for worker in workers:
        store.run(calls.heartbeat([], LEASE, worker))


@pytest.mark.parametrize("more", [0, 20])
def test_a_claim_takes_only_tasks_that_its_worker_named(store, more):
    ids = [enqueue(store, task=task) for task in ("ours", "theirs", "ours")]
    worker = knowing(store, "a", "ours", *(f"other_{number}" for number in range(more)))

    assert [lease.job_id for lease in claim_many(store, worker=worker)] == [ids[0], ids[2]]


def test_a_worker_that_named_no_tasks_takes_every_job(store):
    ids = [enqueue(store, task=task) for task in ("ours", "theirs")]
    worker = knowing(store, "a", "ours")
    store.run(calls.know_tasks(worker, None))

    assert [lease.job_id for lease in claim_many(store, worker=worker)] == ids


def test_tasks_may_be_named_again(store):
    job = enqueue(store, task="theirs")
    worker = knowing(store, "a", "ours")
    assert claim_many(store, worker=worker) == []

    store.run(calls.know_tasks(worker, ["ours", "theirs"]))

    assert [lease.job_id for lease in claim_many(store, worker=worker)] == [job]


def test_a_worker_without_a_row_names_nothing(store, db):
    store.run(calls.know_tasks(404, ["ours"]))

    assert db.execute("select count(*) from faultline.known_tasks").fetchone() == (0,)


@pytest.mark.parametrize(("tasks", "error"), [(["no; name"], BadName), (["t"] * 1001, OutOfBounds)])
def test_what_no_worker_may_name_is_refused(store, tasks, error):
    worker = worker_named(store, "a")

    with pytest.raises(error):
        store.run(calls.know_tasks(worker, tasks))


def test_a_job_that_no_running_worker_knows_is_found_with_who_may_know_it(store, clock):
    knowing(store, "serving", "ours")
    knowing(store, "elsewhere", "theirs", queues=("billing",))
    gone = knowing(store, "gone", "theirs")
    enqueue(store, task="theirs")
    assert store.run(calls.unknown_tasks()) == []
    store.run(calls.worker_stopped(gone))

    (found,) = store.run(calls.unknown_tasks())

    assert (found.queue, found.task, found.jobs, found.died) == ("default", "theirs", 1, 0)
    assert (found.elsewhere, found.other_queues, found.gone) == (["elsewhere"], ["billing"], ["gone"])


@pytest.mark.parametrize("silent", [True, False])
def test_a_queue_without_a_worker_waits(store, clock, silent):
    if silent:
        knowing(store, "a", "ours")
        clock.advance(minutes=2)
    enqueue(store, task="theirs")

    assert store.run(calls.unknown_tasks()) == []


def test_a_worker_that_named_no_tasks_may_know_any(store):
    knowing(store, "a", "ours")
    worker_named(store, "of an earlier release")
    enqueue(store, task="theirs")

    assert store.run(calls.unknown_tasks()) == []


def test_a_job_that_no_worker_knew_for_a_day_is_dead(store, clock):
    job, ours = enqueue(store, task="missing"), enqueue(store, task="ours")
    worker = knowing(store, "a", "ours")
    store.run(calls.unknown_tasks())
    clock.advance(hours=23)
    beat(store, worker)
    assert [found.died for found in store.run(calls.unknown_tasks())] == [0]
    clock.advance(hours=2)
    beat(store, worker)

    assert [found.died for found in store.run(calls.unknown_tasks())] == [1]

    assert (state_of(store, job), state_of(store, ours)) == ("dead", "queued")
    assert store.run(calls.get(job)).error == "no worker knew the task missing for a day"
    assert outcomes(store, job) == ["dead"]
    assert store.run(calls.unknown_tasks()) == []


def test_a_worker_that_knew_the_task_begins_the_day_anew(store, clock):
    """Even where it came and went between two looks."""
    job = enqueue(store, task="theirs")
    serving = knowing(store, "a", "ours")
    store.run(calls.unknown_tasks())
    clock.advance(hours=23)
    short = knowing(store, "b", "theirs")
    store.run(calls.worker_stopped(short))
    clock.advance(hours=2)
    beat(store, serving)

    assert [found.died for found in store.run(calls.unknown_tasks())] == [0]
    assert state_of(store, job) == "queued"


def test_the_mark_goes_when_a_worker_knows_the_task(store, db, clock):
    enqueue(store, task="theirs")
    knowing(store, "a", "ours")
    store.run(calls.unknown_tasks())
    knowing(store, "b", "theirs")

    assert store.run(calls.unknown_tasks()) == []

    assert db.execute("select count(unknown_since) from faultline.active").fetchone() == (0,)


def test_a_job_that_ran_before_dies_under_a_lease_of_its_own(store, clock):
    """Its earlier leases are in the ledger: a second entry under one of their tokens would be refused."""
    job = enqueue(store, task="theirs")
    (lease,) = claim_many(store)
    store.run(calls.snooze(lease, timedelta(0)))
    worker = knowing(store, "a", "ours")
    store.run(calls.unknown_tasks())
    clock.advance(hours=25)
    beat(store, worker)
    store.run(calls.unknown_tasks())

    assert outcomes(store, job) == ["snoozed", "dead"]


def test_a_running_job_is_left_alone(store, clock):
    job = enqueue(store, task="theirs")
    worker = knowing(store, "a", "ours")
    store.run(calls.unknown_tasks())
    claim_many(store)
    clock.advance(hours=25)
    beat(store, worker)

    assert store.run(calls.unknown_tasks()) == []
    assert state_of(store, job) == "running"


def test_doctor_and_the_list_of_workers_tell_the_tasks(store):
    knowing(store, "a", "ours", "mine")
    worker_named(store, "b")
    enqueue(store, task="theirs")

    assert [worker.tasks for worker in store.run(calls.list_workers())] == [None, ["ours", "mine"]]
    assert store.run(calls.doctor()).unknown_jobs == 0  # b may know it
    store.run(calls.worker_stopped(store.run(calls.list_workers())[0].id))
    facts = store.run(calls.doctor())
    assert (facts.unknown_jobs, facts.unknown_tasks) == (1, ["theirs in default"])
