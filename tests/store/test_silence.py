"""A server that does not answer: a second look, another server, or an error by name, all within a bound."""

import asyncio
import threading
import time
from contextlib import closing
from typing import Any

import psycopg
import pytest

from faultline import Faultline, Job
from faultline.errors import CannotConnect, DatabaseError, OldPrimary, OutcomeUnknown, ServerUnavailable
from faultline.store import calls
from faultline.store.driver.connect import aconnect, connect
from faultline.store.pool import AsyncStore, Store
from faultline.store.servers import hosts
from faultline.store.servers.dsn_hosts import split
from faultline.store.session import DbSession
from tests.support import new_job
from tests.support_failover import a_pair

BOUND = 15.0
"""Seconds in which a producer is answered, or refused by name."""

SOON = 8.0
"""Seconds after a promotion in which calls are carried out again."""


@pytest.fixture
def pair():
    with a_pair() as pair:
        yield pair


def jobs_on(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        return conn.execute("select count(*) from faultline.jobs").fetchone()[0]


def test_a_line_leaves_a_frozen_primary_for_the_one_that_was_promoted(pair):
    async def use():
        line = DbSession(pair.both, look_after=1.0)
        await line.run(calls.enqueue(new_job()))
        await asyncio.to_thread(pair.standby.catch_up, pair.old)
        pair.freeze()
        silent = asyncio.create_task(line.run(calls.enqueue(new_job())))
        await asyncio.sleep(3)
        assert not silent.done()  # there is no other yet
        await asyncio.to_thread(pair.standby.promote)
        promoted = time.monotonic()
        with pytest.raises(ServerUnavailable, match="takes writes now"):
            await silent
        await line.run(calls.enqueue(new_job()))
        took = time.monotonic() - promoted
        await line.close()
        return took

    assert asyncio.run(use()) < SOON
    assert jobs_on(pair.new) == 2


def test_an_async_store_finds_the_new_primary(pair):
    async def use():
        store = AsyncStore(pair.both)
        await store.run(calls.enqueue(new_job()))
        await asyncio.to_thread(pair.fail_over)
        silent = asyncio.create_task(store.run(calls.enqueue(new_job())))
        await asyncio.wait([silent], timeout=BOUND)
        answered = silent.done()
        if not answered:
            pair.wake()
        with pytest.raises(ServerUnavailable):
            await silent
        await store.run(calls.enqueue(new_job()))
        await store.close()
        return answered

    assert asyncio.run(use())
    assert jobs_on(pair.new) == 2


def test_a_store_finds_the_new_primary(pair):
    found: list[Any] = []

    def ask():
        try:
            found.append(store.run(calls.enqueue(new_job())))
        except Exception as error:
            found.append(error)

    with closing(Store(pair.both)) as store:
        store.run(calls.enqueue(new_job()))
        pair.fail_over()

        silent = threading.Thread(target=ask)
        silent.start()
        silent.join(BOUND)
        in_time = not silent.is_alive()
        if not in_time:
            pair.wake()
        silent.join()

        assert in_time
        assert isinstance(found[0], ServerUnavailable)
        store.run(calls.enqueue(new_job()))
    assert jobs_on(pair.new) == 2


def app_on(dsn):
    app = Faultline(dsn=dsn)

    @app.task
    async def work(job: Job, n: int) -> None: ...

    return app, work


@pytest.mark.parametrize("bulk", [False, True])
def test_a_producer_is_refused_by_name_while_no_server_answers(pair, bulk):
    """One host or several, with a key or without: nothing hangs, and what may have been done is told so."""
    found = {}

    def ask(name, task, app):
        began = time.monotonic()
        try:
            if bulk:
                app.enqueue_many(task.new(n=n) for n in range(3))
            else:
                task.enqueue(n=1)
        except Exception as error:
            found[name] = error, time.monotonic() - began

    asking = []
    for name, dsn in (("one", pair.old), ("both", pair.both)):
        app, work = app_on(dsn)
        work.enqueue(n=0)
        asking += [
            threading.Thread(target=ask, args=(name, work, app)),
            threading.Thread(target=ask, args=(f"{name} keyed", work.using(key=f"key {name}"), app)),
        ]
    pair.freeze()
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(40)
    pair.wake()

    assert {name for name, (_, took) in found.items() if took < BOUND} == {
        "one",
        "one keyed",
        "both",
        "both keyed",
    }
    unkeyed = (ServerUnavailable,) if bulk else (OutcomeUnknown,)
    assert isinstance(found["one"][0], unkeyed)
    assert isinstance(found["both"][0], unkeyed)
    assert isinstance(found["one keyed"][0], DatabaseError)
    assert isinstance(found["both keyed"][0], DatabaseError)


def test_a_keyed_enqueue_is_answered_by_the_new_primary(pair):
    _, work = app_on(pair.both)
    work.enqueue(n=0)
    pair.fail_over()

    began = time.monotonic()
    work.using(key="order 7").enqueue(n=7)

    assert time.monotonic() - began < BOUND
    assert jobs_on(pair.new) == 2


def test_a_primary_that_wakes_up_is_not_used_again(pair):
    """Neither a connection that was made before, nor a new one; also where it alone answers."""

    async def use():
        line, store = DbSession(pair.both), AsyncStore(pair.both)
        await line.run(calls.enqueue(new_job()))
        await store.run(calls.enqueue(new_job()))
        await asyncio.to_thread(pair.fail_over)
        await (await aconnect(pair.both)).close()  # a third part of the process sees the new one
        pair.wake()
        before = await asyncio.to_thread(jobs_on, pair.old)
        await line.run(calls.enqueue(new_job()))
        await store.run(calls.enqueue(new_job()))
        assert await asyncio.to_thread(jobs_on, pair.old) == before
        assert await asyncio.to_thread(jobs_on, pair.new) == before + 2
        await line.close()
        await store.close()

    asyncio.run(use())

    pair.freeze_new()
    with pytest.raises(CannotConnect, match=r"an old primary.*no answer"):
        connect(pair.both, connect_timeout=2)


def test_a_server_that_is_left_behind_between_the_choice_and_the_connection_is_refused(pair, monkeypatch):
    connect(pair.both).close()
    pair.standby.catch_up(pair.old)
    pair.standby.promote()
    time.sleep(hosts.FRESH_SECONDS)
    connect(pair.both).close()
    old = next(host for host in split(pair.both) if str(pair.standby.folder) not in host)
    monkeypatch.setattr(hosts.Hosts, "choose", lambda self: old)

    with pytest.raises(OldPrimary, match="another one was promoted"):
        connect(pair.both)


@pytest.mark.parametrize("name", ["old", "both"])
def test_a_slow_server_that_lives_is_waited_for(pair, name):
    """A call that waits for a lock longer than any silence may last: its server answers others meanwhile."""
    dsn = getattr(pair, name)

    async def in_line():
        line, store = DbSession(dsn, look_after=1.0), AsyncStore(dsn)
        jobs = await asyncio.gather(line.run(calls.enqueue(new_job())), store.run(calls.enqueue(new_job())))
        await line.close()
        await store.close()
        return jobs

    with closing(Store(dsn)) as store, psycopg.connect(pair.old) as holder:
        store.run(calls.enqueue(new_job()))
        holder.execute("lock faultline.active in exclusive mode")
        threading.Timer(11.0, holder.commit).start()

        ids = []
        thread = threading.Thread(target=lambda: ids.append(store.run(calls.enqueue(new_job()))))
        thread.start()
        began = time.monotonic()
        jobs = asyncio.run(in_line())
        thread.join()

        assert time.monotonic() - began > 9
        assert len({*jobs, *ids}) == 3
