"""Transactions, resources, middleware and hooks in child processes: there as in the worker."""

import os

import pytest

from faultline.store import calls
from faultline.worker.processes import child_handle
from tests.support import enqueue, outcomes
from tests.worker import injection_app as shop
from tests.worker.harness import InProcess, execute, quick, rows


def work_off(dsn: str, **changes) -> None:
    InProcess(dsn, shop.app.registry, quick(**changes), until_empty=True).start().join()


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


@pytest.mark.parametrize("task", ["charge", "charge_async", "charge_in_session"])
@pytest.mark.parametrize(
    ("then", "ends", "written"),
    [
        ("", ["succeeded"], ["written"]),
        ("fail", ["failed"], []),
        ("steal", ["expired"], []),
        ("die", ["failed"], []),
    ],
)
def test_an_injected_transaction_is_fenced_in_a_child_too(database, store, task, then, ends, written):
    job = enqueue(store, task=task, args=f'{{"then": "{then}"}}')

    work_off(database)

    assert effects(database) == written
    assert outcomes(store, job) == ends
    assert len(store.run(calls.refusals(job))) == (then == "steal")
    if not then:
        assert store.run(calls.get(job)).result == "charged"


@pytest.mark.parametrize("task", ["pids", "async_pids"])
def test_a_child_opens_its_own_resources_and_runs_hooks_and_middleware(database, store, task, monkeypatch):
    monkeypatch.setattr(child_handle, "LEAVE_WAIT", 60.0)
    jobs = [enqueue(store, task=task) for _ in range(3)]

    work_off(database, children_max=1)

    results = [store.run(calls.get(job)).result["around"] for job in jobs]
    (pid,) = {result["pid"] for result in results}
    assert pid != os.getpid()
    assert {result["of_client"] for result in results} == {pid}
    said = [said for (said,) in rows(database, "select said from notes where token = %s order by at", pid)]
    assert said == ["startup", "open", "close", "shutdown"]


def test_a_suspect_is_given_its_transaction_and_its_resource_in_a_child(database, store):
    job = enqueue(store, task="suspect")
    execute(database, "update faultline.active set crashes = 1 where id = %s", job)

    work_off(database)

    pid, of_client = store.run(calls.get(job)).result
    assert pid == of_client != os.getpid()
    assert effects(database) == ["written"]
