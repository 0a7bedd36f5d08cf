"""Carrying calls: over a pool that heals, or over your own connection; plain and async alike."""

import asyncio
import inspect
import os
import resource
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import CannotConnect, ConfigError, SchemaMissing, SchemaOutdated, SchemaTooNew
from faultline.store import calls
from faultline.store.pool import AsyncStore, Store
from faultline.store.sql_files import LATEST
from tests.support import LEASE, all_at_once, enqueue, new_job, state_of


def test_the_two_stores_have_the_same_words():
    def words(store):
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in vars(store).items()
            if callable(member) and not name.startswith("_")
        }

    assert words(Store) == words(AsyncStore)


def test_an_async_store_carries_the_same_calls(database, store):
    async def use():
        ours = AsyncStore(database)
        job_id = await ours.run(calls.enqueue(new_job()))
        await ours.close()
        return job_id

    assert state_of(store, asyncio.run(use())) == "queued"


def test_nothing_is_connected_before_the_first_call():
    Store("host=/nowhere")
    AsyncStore("host=/nowhere")


def test_a_server_that_is_not_there_is_told_in_one_line():
    with pytest.raises(CannotConnect) as caught:
        Store("host=/nowhere password=hidden").run(calls.get(1))

    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dsn_that_cannot_be_read_is_told():
    with pytest.raises(ConfigError, match="cannot be read"):
        Store("hots=localhost").run(calls.get(1))


def test_a_database_without_our_schema_is_told_what_to_run(empty_database):
    with pytest.raises(SchemaMissing, match="faultline migrate"):
        Store(empty_database).run(calls.get(1))


def test_an_older_schema_is_refused(database, db):
    db.execute("delete from faultline.migrations where number = %s", [LATEST])

    with pytest.raises(SchemaOutdated, match="faultline migrate"):
        Store(database).run(calls.get(1))


def test_a_newer_schema_that_still_knows_us_works(database, db):
    db.execute("insert into faultline.migrations (number, name) values (%s, 'tomorrow')", [LATEST + 1])
    store = Store(database)

    assert enqueue(store) > 0

    store.close()


def test_a_newer_schema_that_no_longer_knows_us_is_refused(database, db):
    db.execute("update faultline.settings set oldest_client = %s", [LATEST + 1])

    with pytest.raises(SchemaTooNew, match="upgrade"):
        Store(database).run(calls.get(1))


def test_a_connection_that_died_in_the_pool_is_replaced(store, db):
    enqueue(store)
    db.execute(
        "select pg_terminate_backend(pid, 1000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )

    assert enqueue(store) > 0


def test_many_coroutines_may_be_the_first_to_call(database):
    async def use():
        ours = AsyncStore(database)
        ids = await asyncio.gather(*(ours.run(calls.enqueue(new_job())) for _ in range(20)))
        await ours.close()
        return ids

    assert len(set(asyncio.run(use()))) == 20


def test_a_program_with_a_thousand_open_files_can_enqueue(database):
    """`select` refuses descriptors past 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1500:
        pytest.skip("not that many files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1500), hard))
    store = Store(database, connections_max=1)

    with ExitStack() as files:
        for _ in range(1100):
            files.enter_context(_descriptor())
        ids = [enqueue(store) for _ in range(3)]

    store.close()
    assert len(ids) == 3


def test_more_threads_than_connections_take_turns(database):
    store = Store(database, connections_max=2)

    ids = all_at_once(20, lambda _: enqueue(store))

    store.close()
    assert len(set(ids)) == 20


def test_a_refused_call_leaves_the_connection_usable(database):
    store = Store(database, connections_max=1)
    for _ in range(3):
        with pytest.raises(Exception, match="max_jobs is 0"):
            store.run(calls.claim(["default"], 0, lease=LEASE, claim=uuid4()))

    assert enqueue(store) > 0

    store.close()


def test_a_closed_store_opens_again_when_it_is_used(store):
    enqueue(store)
    store.close()

    assert enqueue(store) > 0


def test_a_call_joins_the_callers_transaction(store, database):
    with psycopg.connect(database) as conn:
        job_id = Store.run_in(conn, calls.enqueue(new_job()))
        conn.rollback()

    assert state_of(store, job_id) is None


def test_a_store_that_may_not_prepare_works(database, db):
    """As behind PgBouncer in transaction mode."""
    store = Store(database, prepare=False, connections_max=1)
    for _ in range(10):
        enqueue(store)

    with store.connection() as conn:
        prepared = conn.execute("select count(*) from pg_prepared_statements").fetchone()

    store.close()
    assert prepared == (0,)


@contextmanager
def _descriptor():
    number = os.open(os.devnull, os.O_RDONLY)
    yield number
    os.close(number)


def test_a_call_that_met_functions_being_replaced_is_repeated(database, store, db):
    """What a migration under load can do to a caller, made to happen: once, then never again."""
    db.execute("create sequence public.met")
    db.execute(
        "create or replace function faultline.next_due() returns double precision language plpgsql"
        " as $$ begin"
        " if nextval('public.met') <= 2 then"
        " raise exception 'cache lookup failed for function 1' using errcode = 'XX000'; end if;"
        " return 7; end $$"
    )

    assert store.run(calls.next_due()) == 7
    assert db.execute("select last_value from public.met").fetchone() == (3,)
