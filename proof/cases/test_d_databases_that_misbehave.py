"""Cases D7, D9, D12, D15 and some of our own: settings, limits, deadlocks, and a database that goes away."""

import asyncio
import contextlib
import threading
import time
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.errors import CannotConnect
from faultline.job import Job
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store
from tests.servers import Server
from tests.support import claim_one, enqueue, new_job, outcomes, state_of
from tests.worker.harness import drain, eventually, execute, quick, rows, short, working

INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"
LISTENER = (
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    " and query ~ 'faultline.(claim|newest_place)|listen faultline'"
)


def test_d7_a_success_outlives_a_crash_though_its_role_asked_for_less():
    """`synchronous_commit = off`, and no other flush of the log for ten seconds: only the one we forced."""
    with EmbeddedServer.open(fsync=True, settings={"wal_writer_delay": "10000"}) as server:
        migrate(server.dsn())
        execute(server.dsn(), "alter role postgres set synchronous_commit = off")
        store = Store(server.dsn())
        job = enqueue(store)
        store.run(calls.complete(claim_one(store), "null"))
        store.close()

        server.halt("immediate")
        server.resume()

        store = Store(server.dsn())
        assert outcomes(store, job) == ["succeeded"]
        store.close()


def test_d9_when_no_connection_is_left_an_enqueue_fails_at_once_and_leases_hold(database, store):
    """The pacemaker's connection was made before there was anything to renew."""
    name = conninfo_to_dict(database)["dbname"]
    execute(database, 'drop role if exists "crowded"')
    execute(database, 'create role "crowded" login')
    execute(database, 'grant usage on schema faultline to "crowded"')
    execute(database, 'grant execute on all functions in schema faultline to "crowded"')
    as_one = make_conninfo(database, user="crowded")

    async def work() -> None:
        await asyncio.sleep(3)

    with contextlib.ExitStack() as holders, working(as_one, work, config=short()):
        job = enqueue(store, task="work", max_attempts=1)
        eventually(lambda: state_of(store, job) == "running")
        execute(database, f'alter database "{name}" connection limit 20')
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                holders.enter_context(psycopg.connect(as_one))
        began = time.monotonic()
        with pytest.raises(CannotConnect, match="too many connections"):
            Store(as_one).run(calls.enqueue(new_job()))
        assert time.monotonic() - began < 10
        eventually(lambda: outcomes(store, job))
        holders.close()

    assert outcomes(store, job) == ["succeeded"]
    execute(database, 'drop owned by "crowded"')
    execute(database, 'drop role "crowded"')


def test_d12_a_handler_that_lost_a_deadlock_is_tried_again(database, store):
    """40P01 inside the block: its rows are gone, its attempt has failed, the other one is not touched."""
    execute(database, "create table pairs (id int primary key, n int default 0)")
    execute(database, "insert into pairs values (1), (2)")
    both = threading.Barrier(2)

    def cross(job: Job, first: int, second: int) -> None:
        with job.complete() as conn:
            conn.execute("update pairs set n = n + 1 where id = %s", [first])
            if job.attempt == 1:
                with contextlib.suppress(threading.BrokenBarrierError):
                    both.wait(10)
            conn.execute("update pairs set n = n + 1 where id = %s", [second])

    jobs = [
        enqueue(store, task="cross", args=f'{{"first": {first}, "second": {3 - first}}}') for first in (1, 2)
    ]

    with working(database, cross):
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in jobs))

    assert sorted(len(outcomes(store, job)) for job in jobs) == [1, 2]
    assert rows(database, "select n from pairs") == [(2,), (2,)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timezone", "'Asia/Kathmandu'"),
        ("datestyle", "'German, DMY'"),
        ("intervalstyle", "'iso_8601'"),
        ("search_path", "'nowhere'"),
        ("standard_conforming_strings", "off"),
        ("bytea_output", "'escape'"),
        ("extra_float_digits", "-15"),
        ("default_transaction_isolation", "'repeatable read'"),
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_deferrable", "on"),
        ("idle_in_transaction_session_timeout", "300"),
        ("lock_timeout", "20"),
        ("row_security", "off"),
        ("quote_all_identifiers", "on"),
        ("transform_null_equals", "on"),
        ("array_nulls", "off"),
    ],
)
def test_d15_settings_of_a_role_change_nothing(database, store, name, value):
    tried: list[int] = []

    async def work(job: Job) -> str:
        tried.append(job.id)
        if tried.count(job.id) == 1:
            raise ValueError("once")
        async with job.complete(result={"at": job.attempt}) as conn:
            await conn.execute(INSERT.replace("effects", "public.effects"), [job.id, job.token, "written"])
        return ""

    execute(database, f'alter database "{conninfo_to_dict(database)["dbname"]}" set {name} = {value}')
    ids = [enqueue(store, task="work") for _ in range(5)]

    with working(database, work), working(database, work):
        eventually(lambda: all(state_of(store, job) == "succeeded" for job in ids))

    assert all(store.run(calls.get(job)).result == {"at": store.run(calls.get(job)).attempt} for job in ids)
    assert rows(database, "select count(*), count(distinct job_id) from public.effects") == [(5, 5)]
    assert all(outcomes(store, job).count("succeeded") == 1 for job in ids)


def test_x16_a_database_that_is_renamed_under_its_worker_is_waited_for(database, store, server: Server):
    """It is not there by that name: the worker waits, and goes on when it is back."""
    name = str(conninfo_to_dict(database)["dbname"])
    away = f"{name}_away"
    done: list[int] = []

    async def work(job: Job) -> None:
        done.append(job.id)

    store.close()
    with working(database, work):
        _rename(server.dsn(), name, away)
        time.sleep(1.5)
        _rename(server.dsn(), away, name)
        job = enqueue(store, task="work")
        eventually(lambda: state_of(store, job) == "succeeded")

    assert done == [job]


def _rename(dsn: str, old: str, new: str) -> None:
    execute(dsn, f'alter database "{old}" with allow_connections false')

    def renamed() -> bool:
        execute(dsn, "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", old)
        with contextlib.suppress(psycopg.errors.ObjectInUse):
            execute(dsn, f'alter database "{old}" rename to "{new}"')
            return True
        return False

    eventually(renamed)
    execute(dsn, f'alter database "{new}" with allow_connections true')


def test_x17_wake_ups_of_other_clients_are_only_hints(database, store):
    """Every client may NOTIFY. Noise ends no worker and no connection, and makes up no work."""
    done: list[int] = []

    async def work(job: Job) -> None:
        done.append(job.id)

    with working(database, work) as worker:
        eventually(lambda: worker.worker._state.listening)
        listener = rows(database, LISTENER)
        with psycopg.connect(database, autocommit=True) as conn:
            for said in ("", "no such queue", "'; drop table", "x" * 7999, "default", "\u202e", "{}"):
                conn.execute("select pg_notify('faultline', %s)", [said])
            conn.execute("select pg_notify('faultline', 'default' || n) from generate_series(1, 2000) as n")
        job = enqueue(store, task="work")
        eventually(lambda: state_of(store, job) == "succeeded")
        assert worker.worker._state.listening
        assert len(listener) == 1
        assert rows(database, LISTENER) == listener

    assert done == [job]


def test_x18_a_worker_with_one_of_everything_still_resolves_a_lost_commit(database, store, proxy):
    """One runner, one connection to lend: the broken one must not stand in the way of the question."""

    raised: list[BaseException] = []

    async def write(job: Job) -> None:
        try:
            async with job.complete(result="done") as conn:
                await conn.execute(INSERT, [job.id, job.token, "written"])
        except BaseException as error:
            raised.append(error)
            raise

    job = enqueue(store, task="write", max_attempts=1)
    proxy.cut("COMMIT", "after")
    how: dict[str, Any] = {"pooler": "transaction", "config": quick(jobs_max=1, threads_max=1)}

    drain(proxy.dsn, write, **how)

    assert raised == []
    assert proxy.cuts == 1
    assert outcomes(store, job) == ["succeeded"]
    assert rows(database, "select count(*) from effects") == [(1,)]
