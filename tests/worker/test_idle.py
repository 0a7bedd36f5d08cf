"""A worker with nothing to do: it costs little, and is there at once when there is something."""

import asyncio
import time
from datetime import timedelta
from functools import partial

import pytest
from psycopg.conninfo import conninfo_to_dict

from faultline.job import Job
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import enqueue, new_job, state_of
from tests.worker.harness import eventually, execute, quick, rows, working

ASKED = "select coalesce(sum(calls), 0)::int from pg_stat_user_functions where schemaname = 'faultline'"


async def work(job: Job) -> int:
    return job.id


def succeeded(store: Store, job: int) -> bool:
    return state_of(store, job) == "succeeded"


@pytest.fixture
def counted(database: str) -> str:
    """The database, which counts the functions that are called.

    Not transactions: those of autovacuum count too, and those in which a session that listens steps over what
    was notified in its neighbours' databases.
    """
    name = conninfo_to_dict(database)["dbname"]
    execute(database, f"alter database {name} set track_functions = 'all'")
    return database


def asked_in(dsn: str, seconds: float) -> int:
    before = _asked(dsn)
    time.sleep(seconds)
    return _asked(dsn) - before


def _asked(dsn: str) -> int:
    """Functions called so far; a session tells what it did once a second, or when it was idle for ten."""
    time.sleep(1.2)
    ((count,),) = rows(dsn, ASKED)
    return int(count)


def claims_within(dsn: str, seconds: float) -> bool:
    """Whether a worker asks for work in so many seconds."""
    last = (
        "select max(query_start) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
        " and query ~ 'faultline.(claim|newest_place)'"
    )
    before = rows(dsn, last)
    time.sleep(seconds)
    return rows(dsn, last) != before


def test_an_idle_worker_asks_a_bounded_number_of_questions(counted, store):
    """Four looks a second, and a round of ten duties: an idle fleet must not be a load."""
    with working(counted, work):
        time.sleep(1)
        began = time.monotonic()
        asked = asked_in(counted, 3)
        ended = time.monotonic()

    assert asked / (ended - began) < 25


def test_a_wake_up_ends_the_pause(database, store):
    """Not the poll: it would come after a minute."""
    with working(database, work, config=quick(poll_every=timedelta(minutes=1))):
        time.sleep(0.5)
        for _ in range(5):
            job = enqueue(store, task="work")
            store.run(calls.wake("default"))
            eventually(partial(succeeded, store, job), 20)


def test_the_poll_finds_jobs_that_were_not_announced(database, store):
    with working(database, work, config=quick(idle_poll_every=timedelta(milliseconds=250)), watchdog=False):
        job = enqueue(store, task="work")
        eventually(lambda: state_of(store, job) == "succeeded")


def test_what_came_without_a_hint_is_announced_by_the_watchdog(database, store):
    """Not found by the poll: it would come after a minute."""
    with working(database, work, config=quick(idle_poll_every=timedelta(minutes=1))):
        for _ in range(3):
            time.sleep(0.5)
            job = enqueue(store, task="work")
            eventually(partial(succeeded, store, job), 20)


def test_a_worker_that_hears_wake_ups_looks_seldom_and_a_deaf_one_often(database, store):
    with working(database, work, config=quick(idle_poll_every=timedelta(minutes=1)), watchdog=False) as idle:
        eventually(lambda: idle.worker._state.listening)
        eventually(lambda: not claims_within(database, 2))

        idle.worker._heard(None)

        eventually(lambda: claims_within(database, 2))
        assert claims_within(database, 5)


def test_workers_that_stand_by_ask_next_to_nothing(counted, store):
    """The first one has the duty; the others only look whether it still does."""
    with working(counted, work):
        time.sleep(3)  # it leads by then
        alone = asked_in(counted, 3)
        with working(counted, work), working(counted, work), working(counted, work):
            time.sleep(14)  # their first pauses are short, and what their start took is told after ten

            # With a poll each 250 ms it would be more than twice that, in every window. On a busy machine
            # what their start took is told later still.
            eventually(lambda: asked_in(counted, 3) - alone < 3 * 3 * 4, 60)


def test_a_lost_line_is_made_again_and_listens(database, store):
    """Not found by the poll: it would come after a minute."""
    claims = (
        "from pg_stat_activity where query ~ 'faultline.(claim|newest_place)|listen faultline'"
        " and datname = current_database() and pid <> pg_backend_pid()"
    )
    config = quick(poll_every=timedelta(minutes=1))
    with working(database, work, config=config, watchdog=False) as idle:
        eventually(lambda: idle.worker._state.listening)
        before = rows(database, f"select pid {claims}")
        execute(database, f"select pg_terminate_backend(pid) {claims}")
        eventually(lambda: rows(database, f"select pid {claims}") not in ([], before))
        eventually(lambda: idle.worker._state.listening)
        for _ in range(3):
            time.sleep(0.5)
            job = enqueue(store, task="work")
            store.run(calls.wake("default"))
            eventually(partial(succeeded, store, job), 20)


def test_a_full_worker_makes_its_line_again_and_listens(database, store):
    """It has no use for a claim just now, but a client may cancel what it runs."""
    lines = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query"

    async def nap() -> None:
        await asyncio.sleep(60)

    config = quick(jobs_max=1, grace=timedelta(milliseconds=1))
    with working(database, nap, config=config, watchdog=False) as full:
        job = enqueue(store, task="nap")
        eventually(lambda: state_of(store, job) == "running")
        eventually(lambda: full.worker._state.listening)
        execute(database, f"select pg_terminate_backend(pid) {lines} ~ 'faultline.claim'")
        eventually(lambda: rows(database, f"select 1 {lines} = 'listen faultline'"))
        eventually(lambda: full.worker._state.listening)


def test_wake_ups_come_over_the_line_that_claims(database, store):
    with working(database, work) as idle:
        eventually(lambda: idle.worker._state.listening)
        ((apart,),) = rows(database, "select count(*) from pg_stat_activity where query = 'listen faultline'"
                           " and datname = current_database()")  # fmt: skip

    assert apart == 0  # the connection that listens has claimed since


def test_in_pooler_mode_it_listens_not_and_prepares_nothing(database, store):
    ids = store.run(calls.enqueue_many([new_job(task="work")] * 50))

    with working(database, work, pooler="transaction") as worker:
        eventually(lambda: state_of(store, ids[-1]) == "succeeded")
        assert not worker.worker._state.listening
