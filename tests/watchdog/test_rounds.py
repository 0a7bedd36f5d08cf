"""Rounds: reap, rescue and promote, by the worker whose turn it is; one chore's failure is its own."""

import asyncio
import contextlib
import logging
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline.errors import ConfigError, PermissionDenied
from faultline.store import calls
from faultline.telemetry import listen
from faultline.watchdog.watchdog import every
from tests.support import all_at_once, claim_many, claim_one, enqueue, new_job, outcomes, state_of
from tests.watchdog.conftest import TICK
from tests.worker.harness import eventually, execute, rows

SHORT = timedelta(milliseconds=500)


def wait_for_a_round(dsn: str) -> None:
    ((before,),) = rows(dsn, "select round_at from faultline.rounds")
    eventually(lambda: rows(dsn, "select 1 from faultline.rounds where round_at > %s", before))


def test_a_lease_that_is_not_renewed_is_taken_back(database, store, guard, caplog):
    caplog.set_level(logging.WARNING)
    job = enqueue(store, max_attempts=3)
    lease = claim_one(store, lease=SHORT)
    guard()

    eventually(lambda: outcomes(store, job) == ["expired"])

    info = store.run(calls.get(job))
    assert (info.state, info.attempt, info.crashes) == ("queued", 1, 1)

    def told() -> list[dict[str, Any]]:
        return [record.facts for record in caplog.records if getattr(record, "event", "") == "lease_expired"]

    events = eventually(told)  # after the commit
    assert [(event["job_id"], event["token"], event["died"]) for event in events] == [
        (job, lease.token, False)
    ]


def test_a_job_whose_last_attempt_crashed_is_dead(store, guard):
    job = enqueue(store, max_attempts=1)
    claim_one(store, lease=SHORT)
    guard()

    eventually(lambda: state_of(store, job) == "dead")

    assert "lease expired" in store.run(calls.get(job)).error


def test_a_job_that_no_worker_claims_in_time_is_ended_and_told(store, guard):
    heard: list[dict[str, Any]] = []
    stop = listen(lambda name, facts: heard.append(facts) if name == "job_expired" else None)
    job = enqueue(store, expires_in=timedelta(milliseconds=300))
    guard()

    eventually(lambda: state_of(store, job) == "cancelled")
    eventually(lambda: heard)
    stop()

    assert heard == [{"job_id": job, "task": "test_task", "queue": "default"}]


def test_a_scheduled_job_is_lined_up_when_its_moment_comes(database, store, guard):
    job = enqueue(store, delay=timedelta(seconds=1))
    guard(tick=timedelta(seconds=1))

    eventually(lambda: rows(database, "select 1 from faultline.active"))

    ((late,),) = rows(
        database, "select extract(epoch from faultline.now() - created_at)::float8 from faultline.active"
    )
    assert late < 10
    assert state_of(store, job) == "queued"


def test_a_promoted_job_wakes_a_waiting_worker(database, store, guard):
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("listen faultline")
        enqueue(store, queue="mail", delay=timedelta(milliseconds=300))
        guard()

        heard = [notice.payload for notice in listener.notifies(timeout=60, stop_after=1)]

    assert heard == ["mail"]


def test_more_than_one_batch_falls_due_at_once(database, store, guard):
    store.run(calls.enqueue_many([new_job(delay=timedelta(milliseconds=100))] * 1200))
    guard()

    eventually(lambda: rows(database, "select count(*) from faultline.active") == [(1200,)])


def test_a_job_left_behind_the_floor_is_given_a_new_place(database, store, guard):
    job = enqueue(store)
    execute(database, "update faultline.lanes set floor = 100000")
    execute(database, "select setval('faultline.places', 200000)")
    assert claim_many(store) == []
    guard()

    eventually(lambda: rows(database, "select 1 from faultline.active where pos > 100000"))

    assert claim_one(store).job_id == job


def test_of_many_watchdogs_one_makes_the_round(database, store):
    """P12: twenty at once; each moment's round has one maker, and nothing is counted twice."""
    ids = store.run(calls.enqueue_many([new_job(max_attempts=5)] * 20))
    claim_many(store, lease=SHORT)
    eventually(
        lambda: (
            rows(database, "select bool_and(lease_until < faultline.now()) from faultline.active")
            == [(True,)]
        )
    )

    turns = all_at_once(20, lambda _: store.run(calls.round_(timedelta(minutes=1))))
    all_at_once(8, lambda _: store.run(calls.reap()))

    assert sum(turns) == 1
    assert {tuple(outcomes(store, job)) for job in ids} == {("expired",)}
    assert rows(database, "select count(*), max(crashes) from faultline.later") == [(20, 1)]


def test_an_error_in_one_chore_does_not_end_the_others(database, store, guard, caplog):
    execute(
        database,
        "create or replace function faultline.reap(most int default 500) returns table (id bigint,"
        " token bigint, worker int, task text, queue text, died boolean) language plpgsql as"
        " $$ begin raise exception 'reap is broken' using errcode = 'XX000'; end $$",
    )
    job = enqueue(store, delay=timedelta(milliseconds=300))
    guard()

    eventually(lambda: rows(database, "select 1 from faultline.active where id = %s", job))
    eventually(lambda: rows(database, "select 1 from faultline.rounds where leader is not null"))

    assert any("reap failed" in record.message for record in caplog.records)


def test_a_watchdog_outlives_its_connections(database, store, guard):
    guard()
    eventually(lambda: rows(database, "select 1 from faultline.rounds where isfinite(round_at)"))

    for _ in range(3):
        execute(
            database,
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
            " and datname = current_database() and query like '%%faultline.%%'",
        )
        wait_for_a_round(database)


def test_a_chore_that_fails_gets_its_next_turn(caplog):
    turns: list[object] = []

    async def chore() -> float | None:
        turns.append(1)
        if len(turns) == 1:
            raise RuntimeError("once")
        if len(turns) == 4:
            raise asyncio.CancelledError
        return None

    async def run() -> None:
        try:
            await every(0.001, chore, "the chore")
        except asyncio.CancelledError:
            turns.append("ended")

    asyncio.run(run())

    assert turns == [1, 1, 1, 1, "ended"]
    ours = [record.message for record in caplog.records if record.name == "faultline.watchdog"]
    assert ours == ["the chore failed, and gets its next turn as usual: once"]


def test_hold_fire_after_a_long_silence(database, store, guard):
    """G10: no round was made for long, so good leases look expired; no lease is reaped for it."""
    store.run(calls.configure(default_lease=timedelta(seconds=30)))
    store.run(calls.round_(TICK))
    job = enqueue(store)
    claim_one(store, lease=SHORT)
    execute(database, "update faultline.rounds set round_at = round_at - interval '1 minute'")
    guard()

    eventually(lambda: rows(database, "select 1 from faultline.rounds where hold_until > faultline.now()"))
    eventually(lambda: rows(database, "select 1 from faultline.active where lease_until < faultline.now()"))
    wait_for_a_round(database)

    assert outcomes(store, job) == []


def test_who_holds_the_row_of_the_rounds_does_not_stop_the_reaping(database, store, guard):
    """A login with the watchdog's rights, or a forgotten session, has an open transaction."""
    job = enqueue(store)
    claim_one(store, lease=SHORT)
    execute(database, "update faultline.rounds set round_at = faultline.now() - interval '1 minute'")

    with psycopg.connect(database) as holder:
        holder.execute("select from faultline.rounds for update")
        guard()

        eventually(lambda: outcomes(store, job) == ["expired"])


def test_who_makes_all_rounds_and_never_reaps_does_not_stop_it(database, store, guard):
    job = enqueue(store)
    claim_one(store, lease=SHORT)
    execute(database, "update faultline.rounds set reaped_at = faultline.now() - interval '1 minute'")
    stop = threading.Event()

    def make_rounds() -> None:
        with psycopg.connect(database, autocommit=True) as conn:
            while not stop.wait(0.01):
                conn.execute("select from faultline.round('1 ms')")

    thief = threading.Thread(target=make_rounds)
    thief.start()
    try:
        guard()
        eventually(lambda: outcomes(store, job) == ["expired"])
    finally:
        stop.set()
        thief.join()


def test_a_role_that_may_not_watch_is_told_in_one_line_and_not_each_second(caplog):
    turns = []

    async def forbidden() -> None:
        turns.append(1)
        raise PermissionDenied("permission denied for function round")

    async def watch() -> None:
        await asyncio.wait_for(every(0.001, forbidden, "the round"), 0.2)

    with contextlib.suppress(TimeoutError):
        asyncio.run(watch())

    (told,) = [record for record in caplog.records if record.name == "faultline.watchdog"]
    assert len(turns) > 2
    assert told.exc_info is None
    assert "needs faultline_watchdog" in told.getMessage()


def test_a_clock_that_was_set_is_told_by_a_real_watchdog(database, store, guard, clock):
    """Both ways, on the way from the rows to the log."""
    heard = []
    stop = listen(lambda name, facts: heard.append(facts["seconds"]) if name == "clock_stepped" else None)
    try:
        guard()
        eventually(lambda: rows(database, "select 1 from faultline.rounds where isfinite(round_at)"))
        wait_for_a_round(database)
        clock.advance(hours=1)
        eventually(lambda: heard)
        clock.advance(hours=-2)
        eventually(lambda: len(heard) > 1)
    finally:
        stop()

    assert 3500 < heard[0] < 3700
    assert -7300 < heard[1] < -7100


def test_an_error_of_our_own_is_told_in_a_line(caplog):
    async def chore():
        raise ConfigError("set FAULTLINE_POOLER=transaction")

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(every(0.001, chore, "the round"), 0.2))

    (told,) = (record for record in caplog.records if record.name.startswith("faultline"))
    assert told.exc_info is None
    assert told.getMessage().endswith("set FAULTLINE_POOLER=transaction")


def test_a_round_marks_the_queues_that_are_full(store, guard):
    store.run(calls.configure_queue("default", max_depth=1))
    guard()
    enqueue(store)

    eventually(lambda: store.run(calls.list_queues("default"))[0].full)
