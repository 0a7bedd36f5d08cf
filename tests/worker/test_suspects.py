"""A job that crashed before runs alone, in a child process, whatever its handler is."""

import json
import os
from datetime import timedelta
from typing import Any

from faultline.store import calls
from faultline.task import spec_of
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker import suspects_app as shop
from tests.worker.harness import drain, eventually, execute, quick, rows, short, working

SUSPECT = "update faultline.later set crashes = %s where id = %s"


def suspect(database: str, store: Any, task: str, crashes: int = 1, **args: Any) -> int:
    """A job whose lease was reaped before, so often."""
    job = enqueue(store, task=task, args=json.dumps(args), max_attempts=10, delay=timedelta(hours=1))
    execute(database, SUSPECT, crashes, job)
    store.run(calls.wake(store.run(calls.retry_now(job))))
    return job


def pids(database: str, job: int) -> list[int]:
    """The processes that began this job, first to last."""
    said = rows(database, "select said from notes where job_id = %s order by at", job)
    return [int(pid) for (pid,) in said]


def test_handlers_of_every_kind_run_in_a_child_and_their_transactions_commit(database, store):
    kinds = ("innocent", "innocent_in_thread", "innocent_in_process")
    jobs = [suspect(database, store, kind) for kind in kinds]

    drain(database, *shop.app.registry)

    for job in jobs:
        assert outcomes(store, job) == ["succeeded"]
        assert store.run(calls.get(job)).result == "done"
        assert os.getpid() not in pids(database, job)
    assert rows(database, "select count(*), count(distinct job_id) from effects") == [(3, 3)]


def test_a_warm_child_is_not_held_against_a_job_but_a_fresh_one_is(database, store):
    """What ran there before may have left behind what it died of: so its next child is a fresh one."""
    config = short(jobs_max=1, suspects_max=1)
    with working(database, *shop.app.registry, config=config):
        before = suspect(database, store, "innocent_in_thread")
        eventually(lambda: state_of(store, before) == "succeeded")
        job = suspect(database, store, "poison_in_thread", how="exit")
        eventually(lambda: state_of(store, job) == "dead")

    (warm,) = pids(database, before)
    assert pids(database, job)[0] == warm
    assert len(set(pids(database, job))) == 4
    assert rows(database, "select crashes, crashes_alone from faultline.dead") == [(5, 3)]


def test_a_suspect_that_never_died_in_a_child_costs_no_process_of_its_own(database, store):
    """A worker that was killed leaves hundreds behind: one child after the other would take minutes."""
    jobs = store.run(calls.enqueue_many([new_job(task="innocent_in_thread")] * 20))
    execute(database, "update faultline.active set crashes = 1")

    drain(database, *shop.app.registry, config=short(suspects_max=2))

    assert {state_of(store, job) for job in jobs} == {"succeeded"}
    # A busy machine may cost a child its lease, and another takes its place: a few, not one a job.
    assert rows(database, "select count(distinct said) <= 6 from notes") == [(True,)]


def test_a_task_may_say_how_often(database, store):
    job = suspect(database, store, "poison_once", crashes=2, how="exit")

    drain(database, *shop.app.registry)

    assert outcomes(store, job) == ["dead"]
    said = "out of crashes: crashed alone 1 times, at last by exit code 7"
    assert store.run(calls.get(job)).error.startswith(said)


def test_a_task_may_say_that_its_jobs_never_run_alone(database, store, monkeypatch):
    monkeypatch.setenv("FAULTLINE_DSN", database)
    job = suspect(database, store, "never_alone")

    drain(database, *shop.app.registry)

    assert pids(database, job) == [os.getpid()]


def test_a_handler_that_no_child_can_find_runs_as_usual_and_that_is_told(database, store, caplog):
    ran = []

    async def local() -> None:
        ran.append(os.getpid())

    job = suspect(database, store, "local")

    drain(database, spec_of(local))

    assert outcomes(store, job) == ["succeeded"]
    assert ran == [os.getpid()]
    assert any("cannot run alone after a crash" in record.message for record in caplog.records)


def test_an_import_that_dies_in_a_child_is_no_crash_of_the_job(database, store, monkeypatch, tmp_path):
    """The module is as it is for the worker; in a child it ends the process before the handler begins."""
    module = tmp_path / "dies_in_children.py"
    module.write_text(
        "import os\n"
        "if 'FAULTLINE_DSN' in os.environ: os._exit(3)\n"
        "from faultline import Faultline\n"
        "app = Faultline()\n"
        "@app.task\n"
        "async def fragile() -> int: return os.getpid()\n"
    )
    monkeypatch.delenv("FAULTLINE_DSN", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    import dies_in_children  # type: ignore[import-not-found]

    job = suspect(database, store, "fragile")
    with working(database, *dies_in_children.app.registry):
        eventually(lambda: state_of(store, job) == "succeeded")

    # Where the system is slow to give us a process, it is put off first.
    assert [ending for ending in outcomes(store, job) if ending != "snoozed"] == ["released", "succeeded"]
    info = store.run(calls.get(job))
    assert (info.result, info.crashes) == (os.getpid(), 1)


def test_a_child_that_dies_of_what_ran_there_before_costs_the_next_job_nothing(database, store):
    """The mine goes off in an idle child, or while the next job's handler is looked for, or beside it."""
    with working(database, *shop.app.registry, config=short(jobs_max=1, suspects_max=1)):
        mine = suspect(database, store, "leave_a_mine")
        eventually(lambda: state_of(store, mine) == "succeeded")
        job = suspect(database, store, "innocent_in_thread")
        eventually(lambda: state_of(store, job) == "succeeded")

    assert rows(database, "select count(*) from faultline.dead") == [(0,)]
    assert {"failed", "snoozed", "succeeded"} >= set(outcomes(store, job))


def test_fresh_children_take_the_places_of_idle_ones(database, store):
    with working(database, *shop.app.registry, config=short(jobs_max=2, suspects_max=2)) as worker:
        warm = [suspect(database, store, "innocent_in_thread") for _ in range(2)]
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in warm))
        fresh = [suspect(database, store, "innocent_in_thread", crashes=2) for _ in range(4)]
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in fresh))
        assert len(worker.worker._suspects._children._all) <= 4  # those that are leaving, too

    began = [pids(database, job) for job in fresh]
    assert len({pid for (pid,) in began}) == 4


def test_a_suspect_that_is_cancelled_is_stopped(database, store):
    with working(database, *shop.app.registry, config=quick(lease_for=timedelta(seconds=2))):
        job = suspect(database, store, "slow")
        eventually(lambda: rows(database, "select from notes where job_id = %s", job))
        store.run(calls.cancel(job))
        eventually(lambda: outcomes(store, job) == ["cancelled"])
