"""The database goes away and comes back: no worker ends, no log is flooded, no job loses an attempt."""

import asyncio
import logging
import os
import signal
import time
from datetime import timedelta
from itertools import pairwise

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.errors import ReadOnlyServer, ServerUnavailable
from faultline.job import Job
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from faultline.worker.outage import Outage
from tests.support import enqueue, new_job, outcomes, state_of, still_time
from tests.worker.conftest import TABLES
from tests.worker.harness import RealWorker, children, eventually, execute, quick, rows, working

WORKERS, LEASE_SECONDS, AWAY_SECONDS = 3, 3.0, 6.0
OLD = timedelta(seconds=16)


@pytest.fixture
def own_server():
    with EmbeddedServer.open(fsync=False) as server:
        migrate(server.dsn())
        yield server


def test_d3_an_outage_of_two_leases_costs_no_attempt(own_server, tmp_path):
    """Workers wait, say so once in five seconds, claim again when it is back; the watchdog holds its fire."""
    store = Store(own_server.dsn())
    store.run(calls.configure(default_lease=timedelta(seconds=LEASE_SECONDS)))
    for table in ("notes", "effects"):
        execute(own_server.dsn(), TABLES.format(table))
    workers = [
        RealWorker(own_server.dsn(), tmp_path / f"{number}.log", seconds={"lease_for": LEASE_SECONDS})
        for number in range(WORKERS)
    ]
    try:
        for worker in workers:
            worker.wait_ready()
        # Their pools are open, then, and have something to lose.
        paid = [enqueue(store, task="spend", args='{"said": "paid"}') for _ in range(20)]
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in paid))
        long = [enqueue(store, task="doze", args='{"seconds": 4}', max_attempts=1) for _ in workers]
        eventually(lambda: all(state_of(store, job) == "running" for job in long))
        waiting = store.run(calls.enqueue_many([new_job(task="quick", max_attempts=1, queue="default")] * 50))
        store.close()
        own_server.halt("immediate")
        away_at = time.monotonic()
        time.sleep(AWAY_SECONDS)
        own_server.resume()
        away = time.monotonic() - away_at

        store = Store(own_server.dsn())
        after = store.run(calls.enqueue_many([new_job(task="quick", max_attempts=1)] * 50))
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in (*waiting, *after)))
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in long))

        ended = rows(own_server.dsn(), "select distinct outcome::text from faultline.ledger")
        assert {outcome for (outcome,) in ended} <= {"succeeded", "released"}
        assert rows(own_server.dsn(), "select max(attempt), max(crashes) from faultline.ledger") == [(1, 0)]
        assert rows(
            own_server.dsn(), "select hold_until > pg_postmaster_start_time() from faultline.rounds"
        ) == [(True,)]
        for worker in workers:
            assert worker.process.poll() is None
            said = [
                line for line in worker.lines() if line["logger"].startswith(("faultline.worker", "psycopg"))
            ]
            assert 1 <= len(said) <= away / 5 + 2, said
    finally:
        for worker in workers:
            worker.end()
        store.close()


def test_a_database_that_is_frozen_for_three_short_leases_costs_no_attempt(own_server, tmp_path):
    """Leases of 2 s, where the default is 15 s: a gap that is short for those is long for these."""
    store = Store(own_server.dsn())
    workers = [
        RealWorker(own_server.dsn(), tmp_path / f"{number}.log", seconds={"lease_for": 2.0})
        for number in "12"
    ]
    try:
        for worker in workers:
            worker.wait_ready()
        eventually(  # or the start of the server alone would hold the fire
            lambda: rows(
                own_server.dsn(), "select 1 where faultline.now() > pg_postmaster_start_time() + %s", OLD
            ),
            60,
        )
        jobs = [enqueue(store, task="doze", args='{"seconds": 9}', max_attempts=1) for _ in range(8)]
        eventually(lambda: all(state_of(store, job) == "running" for job in jobs))
        time.sleep(1)
        server = [own_server.pid, *children(own_server.pid)]
        for pid in server:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(6)
        for pid in server:
            os.kill(pid, signal.SIGCONT)
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs), 90)

        ended = rows(own_server.dsn(), "select distinct outcome::text from faultline.ledger")
        assert {outcome for (outcome,) in ended} <= {"succeeded", "released"}
        assert rows(own_server.dsn(), "select max(attempt), max(crashes) from faultline.ledger") == [(1, 0)]
    finally:
        for worker in workers:
            worker.end()
        store.close()


def test_jobs_that_commit_meanwhile_are_given_back(database, store, proxy, caplog):
    """A handler that needs the database in vain has not failed: the database has."""
    begun: list[int] = []

    async def write(job: Job) -> None:
        begun.append(job.attempt)
        if len(begun) == 1:
            await asyncio.to_thread(proxy.close_way)
        async with job.complete() as conn:
            await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])

    job = enqueue(store, task="write", max_attempts=1)

    with working(proxy.dsn, write, config=quick()):
        eventually(lambda: begun)
        time.sleep(2)
        proxy.open_way()
        eventually(lambda: state_of(store, job) == "succeeded")

    assert set(begun) == {1}
    assert not [record for record in caplog.records if record.name.startswith("psycopg")]
    assert outcomes(store, job)[-1] == "succeeded"
    assert rows(database, "select count(*) from effects") == [(1,)]


def test_a_server_that_has_become_read_only_is_waited_out(database, store):
    """After a failover the old primary may still answer: while it does, the worker is patient, not dead."""
    name = conninfo_to_dict(database)["dbname"]
    admin = make_conninfo(database, options="-c default_transaction_read_only=off")
    end_all = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )

    async def work() -> None: ...

    with working(database, work) as worker:
        execute(admin, f'alter database "{name}" set default_transaction_read_only = on')
        execute(admin, end_all)
        time.sleep(0.5)
        assert worker.code is None
        execute(admin, f'alter database "{name}" reset default_transaction_read_only')
        execute(admin, end_all)
        job = eventually(lambda: _enqueued(store))
        eventually(lambda: state_of(store, job) == "succeeded")


def _enqueued(store: Store) -> int:
    try:
        return enqueue(store, task="work")
    except (ServerUnavailable, ReadOnlyServer):
        return 0


def test_a_worker_speaks_at_most_once_in_five_seconds(monkeypatch):
    """However often its parts meet the outage, and though the link flaps."""
    clock, said_at = still_time(monkeypatch), []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said_at.append(clock.now)

    async def flap() -> None:
        outage = Outage(lease=15.0)
        for _ in range(300):
            clock.now += 0.1
            outage.met(ServerUnavailable("gone"))
            outage.met(ServerUnavailable("gone"))
            outage.tell("stopping jobs")
            clock.now += 0.1
            outage.over()

    ear = Ear()
    logging.getLogger("faultline.worker").addHandler(ear)
    asyncio.run(flap())
    logging.getLogger("faultline.worker").removeHandler(ear)

    assert 10 <= len(said_at) <= 13
    assert all(later - earlier >= 4.99 for earlier, later in pairwise(said_at))


def test_a_late_failure_does_not_make_the_outage_before_it_a_short_one(monkeypatch, caplog):
    """A connection that was idle meanwhile breaks when the database is back already."""
    clock = still_time(monkeypatch)
    caplog.set_level(logging.INFO)

    async def go_away() -> None:
        outage = Outage(lease=15.0)
        outage.met(ServerUnavailable("gone"))
        clock.now += 3.0
        outage.over()
        clock.now += 0.5
        outage.met(ServerUnavailable("stale"))
        clock.now += 0.1
        outage.over()
        assert outage._owes_news is not None
        outage._owes_news._run()

    asyncio.run(go_away())

    assert caplog.messages[-1] == "the database is back after 3.6 s"


def test_an_end_that_is_told_late_says_how_late(monkeypatch, caplog):
    """Else a line five seconds after the first says of an outage of one second that it has just ended."""
    clock = still_time(monkeypatch)
    caplog.set_level(logging.INFO)

    async def go_away() -> None:
        outage = Outage(lease=15.0, peer_name="the server")
        outage.met(ServerUnavailable("gone"))
        clock.now += 0.6
        outage.met(ServerUnavailable("still gone"))
        clock.now += 0.5
        outage.over()
        clock.now += 3.9
        assert outage._owes_news is not None
        outage._owes_news._run()

    asyncio.run(go_away())

    assert caplog.messages[-1] == "the server is back after 1.1 s, since 3.9 s ago"


def test_the_pause_between_two_tries_stays_under_a_third_of_a_lease():
    outage = Outage(lease=3.0)

    pauses = [outage.pause() for _ in range(50)]

    assert max(pauses) <= 1.0
    assert min(pauses[:3]) > 0
    assert max(Outage(lease=900.0).pause() for _ in range(50)) <= 2.0
