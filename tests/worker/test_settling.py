"""Recording outcomes: in batches, in which one bad, one locked or one late job costs the others nothing."""

import asyncio
import logging
from types import SimpleNamespace

import psycopg
import pytest

from faultline.job import Job
from faultline.store import calls
from faultline.worker.settlement import settler as settler_module
from faultline.worker.settlement.settler import Settler
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import drain, eventually, execute, quick, rows, short, working
from tests.worker.test_transaction import steal


def test_one_busy_one_late_and_one_cancelled_do_not_hold_up_their_batch(database, store, caplog):
    caplog.set_level(logging.WARNING)
    together = asyncio.Barrier(5)
    busy, late, cancelled, *fine = store.run(calls.enqueue_many([new_job(task="meet")] * 5))
    other = psycopg.connect(database)

    async def meet(job: Job) -> int:
        if job.id == busy:
            other.execute("select from faultline.active where id = %s for update", [job.id])
        elif job.id == late:
            steal(database, job.id)
        elif job.id == cancelled:
            store.run(calls.cancel(job.id))
        await together.wait()
        return job.id

    with working(database, meet, config=quick(jobs_max=5)):
        eventually(lambda: [state_of(store, job) for job in fine] == ["succeeded"] * 2)
        assert state_of(store, busy) == "running"
        other.close()
        eventually(lambda: state_of(store, busy) == "succeeded")

    assert [store.run(calls.get(job)).result for job in (busy, *fine)] == [busy, *fine]
    reasons = {refusal.job_id: refusal.reason for refusal in store.run(calls.refusals())}
    assert reasons == {late: "token_mismatch", cancelled: "cancelled"}
    events = [
        record.facts for record in caplog.records if getattr(record, "event", "") == "stale_write_blocked"
    ]
    assert {event["job_id"] for event in events} == {late, cancelled}


def test_a_locked_row_stalls_neither_its_batch_nor_failures(database, store):
    """Rule 4: it is tried again by itself, and everything else goes on."""
    locked: list[psycopg.Connection] = []

    async def lock(job: Job) -> str:
        conn = psycopg.connect(database)
        conn.execute("select from faultline.active where id = %s for update", [job.id])
        locked.append(conn)
        return "through at last"

    async def fails() -> None:
        raise ValueError

    async def works() -> None: ...

    stuck = enqueue(store, task="lock")

    with working(database, lock, fails, works):
        eventually(lambda: locked)
        failing = [enqueue(store, task="fails") for _ in range(5)]
        working_jobs = [enqueue(store, task="works") for _ in range(5)]
        eventually(lambda: all(outcomes(store, job) == ["failed"] for job in failing))
        eventually(lambda: all(outcomes(store, job) == ["succeeded"] for job in working_jobs))
        assert outcomes(store, stuck) == []

        locked[0].close()
        eventually(lambda: outcomes(store, stuck))

    assert outcomes(store, stuck) == ["succeeded"]


def test_a_failure_whose_row_is_locked_stalls_no_other_failure(database, store):
    locked: list[psycopg.Connection] = []

    async def lock(job: Job) -> None:
        conn = psycopg.connect(database)
        conn.execute("select from faultline.active where id = %s for update", [job.id])
        locked.append(conn)
        raise ValueError

    async def fails() -> None:
        raise ValueError

    stuck = enqueue(store, task="lock")

    with working(database, lock, fails):
        eventually(lambda: locked)
        failing = [enqueue(store, task="fails") for _ in range(3)]
        eventually(lambda: all(outcomes(store, job) == ["failed"] for job in failing))
        assert outcomes(store, stuck) == []
        locked[0].close()
        eventually(lambda: outcomes(store, stuck) == ["failed"])


def test_a_result_that_the_database_refuses_costs_its_batch_nothing(database, store):
    """Worker and database may differ on what is too much; then only that one attempt fails."""
    execute(database, "alter domain faultline.document_text add constraint a_document_says_nothing_bad"
            " check (value <> '\"bad\"') not valid")  # fmt: skip

    async def bad() -> str:
        return "bad"

    async def good() -> str:
        return "good"

    jobs = {task: [enqueue(store, task=task) for _ in range(3)] for task in ("bad", "good")}

    drain(database, bad, good, config=quick(jobs_max=6))

    assert [outcomes(store, job) for job in jobs["good"]] == [["succeeded"]] * 3
    assert [outcomes(store, job) for job in jobs["bad"]] == [["failed"]] * 3


def test_settling_that_fails_in_an_unforeseen_way_does_not_keep_the_lease(database, store):
    """What alone cannot be settled is let go: with a pacemaker that beats on, it would stay away from all."""
    execute(database, "create function break_it() returns trigger language plpgsql as"
            " $$ begin raise exception 'an unforeseen error' using errcode = 'XX000'; end $$")  # fmt: skip

    async def works() -> None: ...

    job = enqueue(store, task="works")
    execute(database, "create trigger break_it before delete on faultline.active for each row"
            f" when (old.id = {job}) execute function break_it()")  # fmt: skip

    with working(database, works, config=short()):
        eventually(lambda: rows(database, "select 1 from faultline.active where claim is not null"))
        eventually(
            lambda: rows(database, "select 1 from faultline.active where lease_until < faultline.now()")
        )
        execute(database, "drop trigger break_it on faultline.active")
        eventually(lambda: state_of(store, job) == "succeeded")

    assert "expired" in outcomes(store, job)


def test_a_row_that_stays_locked_is_tried_less_and_less_often(monkeypatch):
    """Mostly another worker's claim has it, for milliseconds; an operator may have it for long."""
    pauses: list[float] = []
    loop = SimpleNamespace(call_later=lambda pause, *_: pauses.append(pause))
    monkeypatch.setattr(settler_module, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
    settler, attempt = object.__new__(Settler), SimpleNamespace(met_busy=0)
    settler._at_work = 0
    for _ in range(20):
        settler._wait_for_row(attempt)  # type: ignore[arg-type]

    assert pauses[:6] == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.05, 0.05])
    assert set(pauses[6:]) == {0.05}
