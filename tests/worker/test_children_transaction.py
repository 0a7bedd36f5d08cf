"""job.complete in a child: fenced as everywhere, and the worker knows of the commit whatever dies."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from faultline.store import calls
from faultline.worker.processes import child_handle
from faultline.worker.processes.child_attempt import ConnectionPools
from tests.support import enqueue, outcomes, state_of
from tests.worker import children_app as shop
from tests.worker.harness import attempt_of, drain, eventually, is_alive, quick, rows, short, working

TRANSACTIONS = (
    "select count(distinct xmin::text) from"
    " (select xmin from effects union all select xmin from faultline.ledger) as written"
)
WAITING = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
STUCK = (
    "from pg_stat_activity where datname = current_database() and query like '%faultline.complete(job_id%'"
)


def effects(dsn: str) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from effects order by at")]


def notes(dsn: str, job: int) -> list[str]:
    return [said for (said,) in rows(dsn, "select said from notes where job_id = %s order by at", job)]


@pytest.mark.parametrize("task", ["write", "write_async"])
def test_rows_success_and_ledger_commit_together_in_the_child(database, store, task):
    job = enqueue(store, task=task)

    drain(database, *shop.app.registry)

    assert effects(database) == ["written"]
    assert store.run(calls.get(job)).result == "committed"
    assert outcomes(store, job) == ["succeeded"]
    assert rows(database, TRANSACTIONS) == [(1,)]


@pytest.mark.parametrize("task", ["write", "write_async"])
def test_a_lost_lease_rolls_everything_back_and_is_recorded(database, store, caplog, task):
    caplog.set_level(logging.WARNING)
    job = enqueue(store, task=task, args='{"then": "steal"}')

    drain(database, *shop.app.registry)

    assert effects(database) == []
    assert state_of(store, job) == "running"
    (refusal,) = store.run(calls.refusals(job))
    assert (refusal.reason, refusal.token, refusal.current_token) == ("token_mismatch", 1, 2)
    (event,) = [record for record in caplog.records if getattr(record, "event", "") == "stale_write_blocked"]
    assert (event.facts["stale_token"], event.facts["current_token"]) == (1, 2)


def test_an_exception_in_the_block_rolls_everything_back(database, store):
    job = enqueue(store, task="write", args='{"then": "fail"}')

    drain(database, *shop.app.registry)

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]
    assert store.run(calls.get(job)).error.startswith("ValueError: after the insert")


def test_a_process_that_dies_after_its_commit_has_succeeded(database, store, caplog):
    job = enqueue(store, task="write", args='{"then": "die"}')

    drain(database, *shop.app.registry)

    assert effects(database) == ["written"]
    assert outcomes(store, job) == ["succeeded"]
    assert any("its success stands" in record.message for record in caplog.records)


def test_a_process_that_dies_before_it_can_tell_of_its_commit_has_succeeded(database, store, caplog):
    """No reply told the worker of the commit; the rows know."""
    caplog.set_level(logging.DEBUG, "faultline.events")
    job = enqueue(store, task="write", args='{"then": "die unheard"}')

    drain(database, *shop.app.registry)

    assert effects(database) == ["written"]
    assert outcomes(store, job) == ["succeeded"]
    assert store.run(calls.refusals(job)) == []
    told = [record.facts for record in caplog.records if getattr(record, "event", "") == "execution_finished"]
    assert [facts["outcome"] for facts in told] == ["Settled"]


def test_a_process_that_dies_before_its_commit_has_failed(database, store):
    job = enqueue(store, task="write", args='{"then": "die asked"}')

    drain(database, *shop.app.registry)

    assert effects(database) == []
    assert outcomes(store, job) == ["failed"]
    assert store.run(calls.get(job)).error.startswith("HandlerDied")


def test_a_handler_killed_after_its_commit_has_succeeded(database, store):
    job = enqueue(store, task="write", args='{"then": "spin"}')

    with working(database, *shop.app.registry) as worker:
        eventually(lambda: "committed" in notes(database, job))
        pid = int(notes(database, job)[0])
        attempt_of(worker, job).timeout_at = 0.0
        eventually(lambda: not is_alive(pid))

    assert effects(database) == ["written"]
    assert outcomes(store, job) == ["succeeded"]
    assert store.run(calls.refusals(job)) == []


def test_a_value_returned_after_the_block_does_not_replace_the_committed_one(database, store):
    job = enqueue(store, task="write", args='{"then": "return"}')

    drain(database, *shop.app.registry)

    assert store.run(calls.get(job)).result == "committed"


def test_a_block_at_repeatable_read_may_last_longer_than_a_lease(database, store):
    """No beat can renew a row that its own transaction has locked: the worker is told that it has."""
    level = IsolationLevel.REPEATABLE_READ.value
    job = enqueue(store, task="write", args=json.dumps({"then": "wait", "isolation": level}))

    # Long enough for a busy machine to renew it until the block begins, and shorter than the block.
    with working(database, *shop.app.registry, config=short(lease_for=timedelta(seconds=3))):
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]
    assert effects(database) == ["written"]


@contextmanager
def stuck_in_its_commit(database: str, job: int) -> Iterator[tuple[int, psycopg.Connection[Any]]]:
    """A job whose commit waits for a lock of ours; gives the pid of its process, and who holds the lock."""
    with psycopg.connect(database) as blocker:
        blocker.execute("lock table faultline.ledger in exclusive mode")
        pid = int(eventually(lambda: notes(database, job))[0])
        eventually(lambda: rows(database, WAITING))
        yield pid, blocker


def test_a_deadline_that_falls_into_the_commit_does_not_cut_it_short(database, store):
    """The child was told that it may commit: from there on the database answers, and no kill follows."""
    job = enqueue(store, task="write")
    with working(database, *shop.app.registry) as worker:
        with stuck_in_its_commit(database, job) as (pid, blocker):
            attempt = attempt_of(worker, job)
            attempt.timeout_at = 0.0
            eventually(lambda: attempt.stopping == "timeout")
            time.sleep(1)  # for as long as it may take to be killed by mistake
            assert is_alive(pid)
            blocker.rollback()
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]
    assert effects(database) == ["written"]


def test_a_commit_that_is_never_answered_is_given_up_and_the_rows_are_asked(database, store, monkeypatch):
    """Its COMMIT was sent with the completing call: the server carries both out, and no reply is read."""
    monkeypatch.setattr(child_handle, "COMMIT_WAIT", 1.0)
    job = enqueue(store, task="write")
    with working(database, *shop.app.registry) as worker:
        with stuck_in_its_commit(database, job) as (pid, blocker):
            attempt_of(worker, job).timeout_at = 0.0
            eventually(lambda: not is_alive(pid))
            assert state_of(store, job) == "running"
            blocker.rollback()
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["succeeded"]
    assert effects(database) == ["written"]


def test_a_commit_that_is_never_answered_and_ends_with_its_session_has_failed(database, store, monkeypatch):
    monkeypatch.setattr(child_handle, "COMMIT_WAIT", 1.0)
    job = enqueue(store, task="write")
    with working(database, *shop.app.registry) as worker:
        with stuck_in_its_commit(database, job) as (pid, blocker):
            attempt_of(worker, job).timeout_at = 0.0
            eventually(lambda: not is_alive(pid))
            assert state_of(store, job) == "running"
            assert rows(database, f"select pg_terminate_backend(pid) {STUCK} and pid <> pg_backend_pid()")
            eventually(lambda: not rows(database, f"select {STUCK} and pid <> pg_backend_pid()"))
            blocker.rollback()
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["failed"]
    assert "was killed: its commit was not answered" in store.run(calls.get(job)).error
    assert effects(database) == []


def test_what_a_handler_left_behind_cannot_commit_nor_speak_for_the_next_job(database, store):
    first = enqueue(store, task="leave_behind")
    second = enqueue(store, task="nap", args='{"seconds": 2}')

    drain(database, *shop.app.registry, config=quick(jobs_max=1))

    assert set(notes(database, first)) <= {"refused"}
    assert effects(database) == []
    assert set(outcomes(store, first)) == {"failed"}
    assert "still open" in store.run(calls.get(first)).error
    assert isinstance(store.run(calls.get(second)).result, int)
    assert outcomes(store, second) == ["succeeded"]


def test_a_child_that_ends_closes_the_connections_it_lent(database):
    with asyncio.Runner() as loop:
        pools = ConnectionPools(database, "none", loop.get_loop())
        store = pools.transaction_pools.store
        store.run(calls.others_serve("default", None))
        assert store.in_use()[0] == 1

        pools.close(loop)

        assert store.in_use()[0] == 0
