"""The database answers and refuses: rights, limits, damage. A success stays one, and the worker lives on."""

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from faultline.job import Job
from faultline.outcome import Cancel, Dead, Snooze
from faultline.store import calls
from faultline.telemetry.rate_limited import RateLimited
from faultline.worker.claiming.claimer import Claimer
from faultline.worker.transactions import transaction_base
from tests.support import enqueue, new_job, outcomes, state_of
from tests.worker.harness import PATIENCE, InProcess, eventually, execute, quick, registry, rows, working
from tests.worker.refusing import CLASSES, Refusing, all_of, succeeded

SAMPLE = ("42501", "54000", "XX000", "P0001", "0A000", "23514")

WRAPAROUND = "database is not accepting commands that assign new XIDs to avoid wraparound data loss"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "faultline.worker"]


# each class of error, by injection


@pytest.mark.parametrize("part", range(4))
def test_no_error_of_a_claim_ends_a_worker(database, store, part):
    refusing = Refusing(database, "claim")

    async def works() -> None: ...

    with working(database, works) as worker:
        for state in CLASSES[part::4]:
            refusing.refuse(state, "claim")
            job = enqueue(store, task="works")
            refusing.wait_said()
            refusing.relent()
            eventually(partial(succeeded, store, job))
            assert worker.code is None, state

    assert rows(database, "select distinct outcome::text, attempt from faultline.ledger") == [
        ("succeeded", 1)
    ]


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("result", [None, {"sent": 1}], ids=["nothing", "a result"])
def test_no_error_of_recording_it_makes_a_success_a_failure(
    database, store, part, result: dict[str, int] | None
):
    """Each job's settling is refused with a class of its own, batch and single; then all are let through."""
    refusing = Refusing(database, "complete_many", "complete")
    runs: list[int] = []

    async def works(job: Job) -> dict[str, int] | None:
        runs.append(job.id)
        return result

    states = CLASSES[part::4]
    jobs = store.run(calls.enqueue_many([new_job(task="works", max_attempts=1)] * len(states)))
    refusing.refuse_each(dict(zip(jobs, states, strict=True)), "complete_many", "complete")

    with working(database, works, config=quick(jobs_max=30, lease_for=timedelta(minutes=10))):
        eventually(lambda: len(runs) == len(jobs))
        eventually(lambda: refusing.said > 2 * len(states))
        assert all_of(outcomes(store, job) for job in jobs) == set()
        refusing.relent()
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))

    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * len(jobs)
    assert sorted(runs) == sorted(jobs)


def test_what_a_handler_said_is_recorded_as_it_was_said(database, store):
    """Failures, naps, cancellations and deaths: refused for a while, none becomes another."""
    refusing = Refusing(database, "fail_many", "fail", "snooze", "bury", "cancel_claimed")

    async def fails() -> None:
        raise ValueError("as expected")

    async def naps() -> None:
        raise Snooze(timedelta(hours=1))

    async def ends() -> None:
        raise Dead("for good")

    async def stops() -> None:
        raise Cancel("not wanted")

    handlers = {fails: "failed", naps: "snoozed", ends: "dead", stops: "cancelled"}
    pairs = [(handler, state) for place, handler in enumerate(handlers) for state in CLASSES[place::8]]
    jobs = [enqueue(store, task=handler.__name__) for handler, _ in pairs]
    for job, (_, state) in zip(jobs, pairs, strict=True):
        refusing.refuse(state, "fail_many", "fail", "snooze", "bury", "cancel_claimed", job=job)

    with working(database, *handlers, config=quick(jobs_max=len(jobs))):
        refusing.wait_said(2 * len(jobs))
        refusing.relent()
        eventually(lambda: all(outcomes(store, job) for job in jobs))

    assert [outcomes(store, job)[:1] for job in jobs] == [[handlers[handler]] for handler, _ in pairs]


def test_a_result_that_is_refused_as_a_document_is_still_the_handlers_failure(database, store):
    """The lease's owner does not matter: the call is tried once more, with a lease that no worker holds."""
    refusing = Refusing(database, "complete_many", "complete")

    async def gives() -> str:
        return "something"

    job = enqueue(store, task="gives", max_attempts=1)
    refusing.refuse("22P02", "complete_many", "complete")

    with working(database, gives):
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["dead"]


@pytest.mark.parametrize("state", SAMPLE)
def test_a_lease_that_cannot_be_renewed_costs_no_attempt_and_is_not_taken_again_at_once(
    database, store, caplog, state
):
    """Nothing is claimed while beats are refused: it would be stopped again, and again."""
    caplog.set_level(logging.WARNING)
    refusing = Refusing(database, "heartbeat")
    runs: list[int] = []

    async def waits(job: Job) -> None:
        runs.append(job.attempt)
        if len(runs) == 1:
            refusing.refuse(state, "heartbeat")
            await asyncio.sleep(PATIENCE)

    job = enqueue(store, task="waits", max_attempts=1)

    with working(database, waits, config=quick(lease_for=timedelta(seconds=4))):
        eventually(lambda: outcomes(store, job))
        time.sleep(1.5)
        assert runs == [1]
        refusing.relent()
        eventually(lambda: state_of(store, job) == "succeeded")

    assert runs == [1, 1]
    assert set(outcomes(store, job)) <= {"released", "succeeded", "expired"}
    assert any(f"SQLSTATE {state}" in line for line in lines(caplog))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_error_of_a_beat_costs_a_lease_that_the_next_beat_renews(database, store):
    """Every class in turn, each refused once or twice: the handler runs through all of them."""
    refusing = Refusing(database, "heartbeat")
    let_go = asyncio.Event()
    runs: list[int] = []

    async def waits(job: Job) -> None:
        runs.append(job.attempt)
        await let_go.wait()

    job = enqueue(store, task="waits", max_attempts=1)
    with working(database, waits, config=quick(lease_for=timedelta(seconds=6))) as worker:
        eventually(lambda: runs)
        for state in CLASSES:
            refusing.refuse(state, "heartbeat")
            refusing.wait_said()
            refusing.relent()
            _wait_renewed(database)
            assert worker.code is None, state
        worker._loop.call_soon_threadsafe(let_go.set)
        eventually(lambda: state_of(store, job) == "succeeded")

    assert (runs, outcomes(store, job)) == ([1], ["succeeded"])


def _wait_renewed(database: str) -> None:
    until = "select lease_until from faultline.active"
    before = rows(database, until)
    eventually(lambda: rows(database, until) != before)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "states", [SAMPLE, pytest.param(CLASSES, marks=pytest.mark.long)], ids=["some", "all"]
)
@pytest.mark.parametrize("verb", ["round", "reap", "promote", "rescue", "lead"])
def test_no_error_of_a_chore_ends_the_watchdog(database, store, caplog, verb, states):
    refusing = Refusing(database, verb)

    async def works() -> None: ...

    with working(database, works, config=quick(tick=timedelta(seconds=0.05))):
        for state in states:
            refusing.refuse(state, verb)
            refusing.wait_said()
            refusing.relent()
        job = enqueue(store, task="works")
        eventually(lambda: state_of(store, job) == "succeeded")

    told = [record.getMessage() for record in caplog.records if record.name == "faultline.watchdog"]
    assert len(told) <= len(states)


# rights that are revoked for real


@pytest.fixture
def login(database: str) -> Iterator[tuple[str, str]]:
    """A worker's own login, and the group that gives it its rights."""
    prefix = f"r{secrets.token_hex(5)}_"
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("select faultline.make_roles(%s, own => true)", [prefix])
        conn.execute(f"create role {prefix}login login")
        conn.execute(f"grant {prefix}worker, {prefix}watchdog to {prefix}login")
        yield f"{prefix}login", f"{prefix}worker"
        roles = conn.execute(
            "select rolname from pg_roles where starts_with(rolname, %s)", [prefix]
        ).fetchall()
        for (role,) in roles:
            conn.execute(f"reassign owned by {role} to current_user")
            conn.execute(f"drop owned by {role} cascade")
        for (role,) in roles:
            conn.execute(f"drop role {role}")


@pytest.mark.parametrize(
    ("revoke", "grant"),
    [
        ("revoke execute on function faultline.claim from {group}",
         "grant execute on function faultline.claim to {group}"),
        ("revoke {group} from {login}", "grant {group} to {login}"),
        ("revoke usage on schema faultline from {group}, {watchdog}",
         "grant usage on schema faultline to {group}, {watchdog}"),
    ],
    ids=["function", "membership", "schema"],
)  # fmt: skip
def test_a_worker_outlives_rights_that_are_revoked(database, store, login, caplog, revoke, grant):
    """It says which right is missing and what to do, once in five seconds, and goes on when it is granted."""
    caplog.set_level(logging.WARNING)
    name, group = login
    words = {"login": name, "group": group, "watchdog": group.replace("worker", "watchdog")}
    runs: list[int] = []

    async def waits(job: Job) -> None:
        runs.append(job.id)
        await asyncio.sleep(2)

    before = enqueue(store, task="waits", max_attempts=1)
    with working(make_conninfo(database, user=name), waits) as worker:
        eventually(lambda: runs)
        execute(database, revoke.format(**words))
        began = time.monotonic()
        after = enqueue(store, task="waits", max_attempts=1)
        time.sleep(3)
        assert (worker.code, worker.error) == (None, None)
        execute(database, grant.format(**words))
        eventually(lambda: [state_of(store, job) for job in (before, after)] == ["succeeded"] * 2)
        lasted = time.monotonic() - began

    assert runs == [before, after]
    told = [line for line in lines(caplog) if "refuses a call" in line]
    assert 1 <= len(told) <= lasted / 5 + 1
    assert "permission denied" in told[0]
    assert "faultline_worker" in told[0]


def test_a_success_waits_for_the_right_to_record_it(database, store, login):
    name, group = login
    revoked = ("complete_many", "complete")
    runs: list[int] = []

    async def works(job: Job) -> int:
        runs.append(job.id)
        return job.id

    for verb in revoked:
        execute(database, f"revoke execute on function faultline.{verb} from {group}")
    jobs = [enqueue(store, task="works", max_attempts=1) for _ in range(5)]

    with working(make_conninfo(database, user=name), works) as worker:
        eventually(lambda: len(runs) == 5 and worker.worker._state._held_back)
        jobs += [enqueue(store, task="works", max_attempts=1) for _ in range(20)]
        time.sleep(2)
        assert len(runs) <= 6  # more could not be recorded either: they are left to others, but for a trial
        assert all_of(outcomes(store, job) for job in jobs) == set()
        for verb in revoked:
            execute(database, f"grant execute on function faultline.{verb} to {group}")
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))

    assert [outcomes(store, job) for job in jobs] == [["succeeded"]] * len(jobs)
    assert sorted(runs) == jobs


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_transaction_whose_success_cannot_be_recorded_has_not_failed(
    database, store, login, kind, caplog, monkeypatch
):
    monkeypatch.setattr(
        transaction_base, "_seldom", RateLimited(5.0)
    )  # a test before this one may have told it already
    name, group = login
    execute(database, f"grant insert on effects to {name}")
    runs: list[int] = []

    async def write(job: Job) -> None:
        runs.append(job.attempt)
        async with job.complete() as conn:
            await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])

    def write_plainly(job: Job) -> None:
        runs.append(job.attempt)
        with job.complete() as conn:
            conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])

    execute(database, f"revoke execute on function faultline.complete from {group}")
    handler = write if kind == "async" else write_plainly
    job = enqueue(store, task=handler.__name__, max_attempts=1)

    with working(make_conninfo(database, user=name), handler):
        eventually(lambda: outcomes(store, job)[:1] == ["snoozed"])
        execute(database, f"grant execute on function faultline.complete to {group}")
        eventually(lambda: state_of(store, job) == "succeeded")

    assert len(runs) > 1
    assert set(runs) == {1}
    assert rows(database, "select count(*) from effects") == [(1,)]
    assert any("could not be recorded" in line and "faultline_worker" in line for line in lines(caplog))


def test_no_class_of_error_makes_a_transaction_that_cannot_be_recorded_fail(database, store):
    """What every job would meet says nothing about this one; its rows were rolled back, so it runs again."""
    refusing = Refusing(database, "complete")

    async def write(job: Job) -> None:
        async with job.complete() as conn:
            await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])

    with working(database, write):
        for state in ("22003", "22P02", "23502", "23514", "42P05", "P0001", "XX000"):
            refusing.refuse(state, "complete")
            job = enqueue(store, task="write", max_attempts=1)
            eventually(lambda: outcomes(store, job))  # noqa: B023
            assert outcomes(store, job)[:1] == ["snoozed"], state
            refusing.relent()


def test_a_role_that_a_handler_took_is_the_handlers_own_failure(database, store, login):
    """Only this transaction is refused, by what the handler did in it: that is a failure like any other."""
    name, group = login
    other = group.replace("worker", "reader")
    execute(database, f"grant {other} to {name}")

    async def changes(job: Job) -> None:
        async with job.complete() as conn:
            await conn.execute(f"set local role {other}")

    job = enqueue(store, task="changes", max_attempts=1)
    with working(make_conninfo(database, user=name), changes):
        eventually(lambda: outcomes(store, job))

    assert outcomes(store, job) == ["dead"]


def test_a_server_that_takes_no_writes_is_told_with_what_to_do(database, store, caplog):
    execute(database, "create function public.stop_writes() returns trigger language plpgsql as"
            f" $$ begin raise exception '{WRAPAROUND}' using errcode = '54000'; end $$")  # fmt: skip
    runs: list[int] = []

    async def works(job: Job) -> None:
        runs.append(job.id)

    with working(database, works, config=quick(lease_for=timedelta(seconds=2))):
        execute(database, "create trigger stop before update or delete on faultline.active"
                " execute function public.stop_writes()")  # fmt: skip
        job = enqueue(store, task="works", max_attempts=1)
        eventually(lambda: [line for line in lines(caplog) if "SQLSTATE 54000" in line])
        execute(database, "drop trigger stop on faultline.active")
        eventually(lambda: state_of(store, job) == "succeeded")

    assert runs == [job]
    assert any("vacuumed" in line for line in lines(caplog))


# leaving


def test_a_worker_that_ends_on_a_bug_gives_its_leases_back(database, store, monkeypatch):
    begun: list[int] = []

    async def waits(job: Job) -> None:
        begun.append(job.id)
        await asyncio.sleep(PATIENCE)

    feed = Claimer._feed

    async def breaks(self: Claimer) -> bool:
        if begun:
            raise RuntimeError("a bug of ours")
        return await feed(self)

    monkeypatch.setattr(Claimer, "_feed", breaks)
    jobs = [enqueue(store, task="waits") for _ in range(2)]
    worker = InProcess(database, registry(waits), quick()).start()

    with pytest.raises(RuntimeError, match="a bug of ours"):
        worker.join()

    assert begun
    assert rows(database, "select count(*) from faultline.active where claim is not null") == [(0,)]
    assert all_of(outcomes(store, job) for job in jobs) == {"released"}


def test_a_worker_that_leaves_gives_back_what_it_could_not_record(database, store):
    refusing = Refusing(database, "complete_many", "complete")
    refusing.refuse("54000", "complete_many", "complete")

    async def works() -> None: ...

    job = enqueue(store, task="works", max_attempts=1)
    worker = InProcess(database, registry(works), quick()).start()
    refusing.wait_said(2)

    assert worker.leave() == 1

    assert outcomes(store, job) == ["released"]
    assert state_of(store, job) == "queued"
