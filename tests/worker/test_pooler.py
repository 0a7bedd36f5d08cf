"""Behind a pooler: found by itself, said at the start, and nothing of a handler's stays in its sessions."""

import asyncio
import logging
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.app import Faultline
from faultline.job import Job
from faultline.store import calls
from scripts import tools
from tests.support import all_at_once, enqueue, new_job, state_of
from tests.worker.harness import drain, eventually, execute, quick, rows, working

LEAVE = """
set statement_timeout = '77s';
set search_path = elsewhere;
set role pg_monitor;
set local lock_timeout = 5;
create temp table left_here (n int);
select pg_advisory_lock(77)
"""
LOOK = """
select current_setting('statement_timeout'), current_setting('search_path'), current_setting('role'),
       current_setting('lock_timeout'), to_regclass('pg_temp.left_here')::text,
       (select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and database =
               (select oid from pg_database where datname = current_database()))
"""
CLEAN = ("0", '"$user", public', "none", "0", None, 0)


async def work(job: Job) -> int:
    return job.id


@pytest.fixture
def bouncer(server, database):
    """PgBouncer in transaction mode before this test's database, with fewer sessions than connections."""
    program = tools.find("pgbouncer")
    if program is None:
        pytest.skip(tools.why_not("pgbouncer"))
    if not hasattr(server, "tcp_dsn"):
        pytest.skip("the server is not ours, so its password is not known")
    tmp_path = Path(tempfile.mkdtemp(prefix="faultline-pgbouncer-"))
    tmp_path.chmod(0o755)
    known = conninfo_to_dict(server.tcp_dsn(conninfo_to_dict(database)["dbname"]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings, users = tmp_path / "pgbouncer.ini", tmp_path / "users.txt"
    users.write_text(f'"{known["user"]}" "{known["password"]}"\n')
    settings.write_text(
        f"[databases]\n* = host={known['host']} port={known['port']}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = plain\nauth_file = {users}\npool_mode = transaction\n"
        f"default_pool_size = 3\nunix_socket_dir =\nignore_startup_parameters = extra_float_digits\n"
    )
    options = []
    if os.geteuid() == 0:  # it refuses to run as root
        options = ["-u", "nobody"]
        for path in (users, settings):
            shutil.chown(path, "nobody")
    process = subprocess.Popen([program, *options, str(settings)], stderr=subprocess.DEVNULL)
    dsn = make_conninfo(server.tcp_dsn(str(known["dbname"])), port=port)
    eventually(lambda: _listens(port))
    yield dsn
    process.terminate()
    process.wait()
    shutil.rmtree(tmp_path)


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("pooler", ["auto", "transaction"])
def test_it_works_behind_pgbouncer_in_transaction_mode(bouncer, database, store, caplog, pooler):
    caplog.set_level(logging.INFO)

    async def write(job: Job) -> None:
        async with job.complete(result=job.id) as conn:
            await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])
            await asyncio.sleep(0)

    ids = store.run(calls.enqueue_many([new_job(task="work")] * 100))
    writing = store.run(calls.enqueue_many([new_job(task="write")] * 20))

    assert drain(bouncer, work, write, pooler=pooler) == 0

    assert {store.run(calls.get(job)).result == job for job in (*ids, *writing)} == {True}
    assert rows(database, "select count(*) from effects") == [(20,)]
    (told,) = [record for record in caplog.records if "LISTEN are off" in record.message]
    assert told.levelname == {"auto": "WARNING", "transaction": "INFO"}[pooler]
    assert "FAULTLINE_POOLER=transaction" in told.message


def test_producers_find_the_pooler_by_themselves(bouncer, store):
    """As many connections as there are sessions: statements that one prepared would meet another's."""
    producers = [Faultline(bouncer, pooler="auto") for _ in range(4)]

    def produce(number: int) -> None:
        for _ in range(20):
            producers[number].wake("default")
            producers[number].jobs()

    all_at_once(4, produce)
    for producer in producers:
        producer.close()


def test_a_pooler_that_was_said_not_to_be_there_is_told_by_the_settings_name(bouncer, store, caplog):
    """It is waited out as any refusal is, and no job is lost: which sessions clash is a matter of chance."""
    store.run(calls.enqueue_many([new_job(task="work")] * 500))

    def told() -> bool:
        return any("FAULTLINE_POOLER=transaction" in record.getMessage() for record in caplog.records)

    with working(bouncer, work, pooler="none"), working(bouncer, work, pooler="none"):
        eventually(lambda: told() or not enqueue(store, task="work"))


@pytest.mark.parametrize(
    ("then", "ends"),
    [("select 1", "succeeded"), ("select 1 / 0", "dead"), ("insert into public.doubts values (1)", "dead")],
    ids=["done", "failed", "failed in its commit"],
)
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
def test_behind_a_pooler_a_handler_leaves_nothing_in_the_session_it_was_lent(
    bouncer, database, store, kind, then, ends
):
    """The next client of the pool gets the session in the moment of the commit."""
    execute(database, "create table sure (n int primary key)")
    execute(database, "create table doubts (n int references sure deferrable initially deferred)")

    async def in_loop(job: Job) -> None:
        async with job.complete() as conn:
            await conn.execute(LEAVE)
            await conn.execute(f"reset role; {then}")

    def in_thread(job: Job) -> None:
        with job.complete() as conn:
            conn.execute(LEAVE)
            conn.execute(f"reset role; {then}")

    handler = in_loop if kind == "coroutine" else in_thread
    job = enqueue(store, task=handler.__name__, max_attempts=1)

    assert drain(bouncer, handler, pooler="auto") == 0

    assert state_of(store, job) == ends
    for _ in range(20):
        with psycopg.connect(bouncer, prepare_threshold=None, autocommit=True) as other:
            assert other.execute(LOOK).fetchone() == CLEAN


def test_what_is_deferred_to_the_commit_still_sees_the_handlers_own_settings(bouncer, database, store):
    execute(
        database,
        "create table tenants (n int); create function noted() returns trigger language plpgsql as $$"
        " begin insert into tenants values (current_setting('shop.tenant')::int); return null; end $$;"
        " create constraint trigger late after insert on effects deferrable initially deferred"
        " for each row execute function noted()",
    )

    async def write(job: Job) -> None:
        async with job.complete() as conn:
            await conn.execute("set local shop.tenant = 7")
            await conn.execute("insert into effects (job_id, token) values (%s, %s)", [job.id, job.token])

    enqueue(store, task="write")

    assert drain(bouncer, write, pooler="auto") == 0

    assert rows(database, "select n from tenants") == [(7,)]


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
def test_what_a_handler_set_ends_with_its_transaction_where_sessions_are_shared(database, store, kind):
    """Without a pooler the same connection is lent again, and shows what the next client would find."""
    seen = []

    async def in_loop(job: Job) -> None:
        async with job.complete() as conn:
            seen.append(await (await conn.execute(LOOK)).fetchone())
            await conn.execute(LEAVE)

    def in_thread(job: Job) -> None:
        with job.complete() as conn:
            seen.append(conn.execute(LOOK).fetchone())
            conn.execute(LEAVE)

    handler = in_loop if kind == "coroutine" else in_thread
    jobs = store.run(calls.enqueue_many([new_job(task=handler.__name__)] * 2))

    assert drain(database, handler, pooler="transaction", config=quick(jobs_max=1)) == 0

    assert seen == [CLEAN, CLEAN]
    assert [state_of(store, job) for job in jobs] == ["succeeded"] * 2  # not by the role that it took
