"""Gathered enqueues in trouble: lost replies, servers that turn, migrations, held keys, forks, hints."""

import asyncio
import os
import signal
import threading
from collections import Counter
from datetime import timedelta

import psycopg
import pytest

from faultline import Faultline, KeyConflict, OutcomeUnknown
from faultline.client.gathering import async_line, thread_line
from faultline.errors import CannotConnect, ServerUnavailable
from faultline.store.migrate import migrate
from faultline.telemetry import listen
from tests.client.gathered import FORMS, MAIL, BusyApp, InThreads
from tests.support import new_job
from tests.support_proxy import Proxy
from tests.support_turning import a_pair
from tests.worker.harness import eventually


@pytest.fixture
def patient(monkeypatch):
    """A line that waits for its leader, so that what gathers behind it is known."""
    for line in (async_line, thread_line):
        monkeypatch.setattr(line, "OVERTAKE_SECONDS", 30.0)


@pytest.fixture
def proxy(database):
    """A way to the server that can be cut."""
    proxy = Proxy(database)
    yield proxy
    proxy.close_way()


def count(database, task):
    with psycopg.connect(database) as conn:
        return len(conn.execute("select from faultline.active where task = %s", [task]).fetchall())


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 5)])
def test_a_lost_reply_is_unknown_to_each_caller_and_no_job_is_sent_twice(database, proxy, when, written):
    async def main():
        async with BusyApp(database, proxy.dsn) as busy:
            waiting = [busy.add(new_job(queue=MAIL, task="lost")) for _ in range(5)]
            await asyncio.sleep(0)
            proxy.cut("faultline.enqueue_each", when)
            await busy.let_go()
            return await asyncio.gather(*waiting, return_exceptions=True)

    answers = asyncio.run(main())

    assert proxy.cuts == 1
    assert [type(answer) for answer in answers] == [OutcomeUnknown] * 5
    assert len({id(answer) for answer in answers}) == 5
    assert count(database, "lost") == written


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_reply_of_jobs_with_keys_is_asked_for_again(database, proxy, when):
    async def main():
        async with BusyApp(database, proxy.dsn, key="first") as busy:
            waiting = [busy.add(new_job(queue=MAIL, task="lost", key=f"k{n}")) for n in range(5)]
            await asyncio.sleep(0)
            proxy.cut("faultline.enqueue_each", when)
            await busy.let_go()
            return await asyncio.gather(*waiting)

    answers = asyncio.run(main())

    assert proxy.cuts == 1
    assert len(set(answers)) == 5
    assert count(database, "lost") == 5


@pytest.mark.parametrize("form", FORMS)
def test_a_server_that_turned_read_only_is_left_and_no_caller_notices(form):
    with a_pair() as pair:
        callers = form(Faultline(pair.dsn))
        callers.all_at_once([new_job(queue=MAIL) for _ in range(30)])
        pair.old.take_no_writes()

        for _ in range(3):
            answers = callers.all_at_once([new_job(queue=MAIL) for _ in range(30)])
            assert all(isinstance(answer, int) for answer in answers), answers
        assert pair.new.ask("select count(*) from faultline.active") >= (30,)
        callers.close()


@pytest.mark.parametrize("form", FORMS)
def test_a_server_that_is_away_is_told_to_each_caller(database, proxy, form):
    callers = form(Faultline(proxy.dsn))
    callers.all_at_once([new_job(queue=MAIL)])
    proxy.close_way()

    answers = callers.all_at_once([new_job(queue=MAIL) for _ in range(10)])

    assert {type(answer) for answer in answers} <= {CannotConnect, ServerUnavailable, OutcomeUnknown}
    assert len({id(answer) for answer in answers}) == 10
    callers.close()


@pytest.mark.parametrize("form", FORMS)
def test_a_migration_at_the_same_time_fails_no_caller(database, form):
    callers = form(Faultline(database))
    callers.all_at_once([new_job(queue=MAIL) for _ in range(10)])
    over = threading.Event()

    def migrate_again():
        for _ in range(3):
            with psycopg.connect(database, autocommit=True) as conn:
                conn.execute("update faultline.settings set functions = ''")
            migrate(database)
        over.set()

    migrating = threading.Thread(target=migrate_again)
    migrating.start()
    answers = []
    while not over.is_set():
        answers += callers.all_at_once([new_job(queue=MAIL) for _ in range(20)])
    migrating.join(60)
    callers.close()

    assert len(set(answers)) == len(answers)
    assert {type(answer) for answer in answers} == {int}


@pytest.mark.parametrize("form", FORMS)
def test_a_pooler_in_transaction_mode_carries_them_too(database, form):
    callers = form(Faultline(database, pooler="transaction"))
    callers.all_at_once([new_job(queue=MAIL)])

    answers = callers.all_at_once([new_job(queue=MAIL) for _ in range(40)])

    assert len(set(answers)) == 40
    callers.close()


@pytest.mark.parametrize("form", FORMS)
def test_queues_that_are_new_are_created(database, form):
    callers = form(Faultline(database))

    answers = callers.all_at_once([new_job(queue=f"fresh-{number % 7}") for number in range(40)])

    assert len(set(answers)) == 40
    callers.close()


def test_a_key_that_another_transaction_holds_delays_no_other(database):
    async def main(theirs):
        async with Faultline(database) as app:
            send = app._sender.aenqueue
            await send(new_job(queue=MAIL))
            keys = [f"k{number}" for number in range(20)]
            held = [asyncio.create_task(send(new_job(queue=MAIL, key="held"))) for _ in range(3)]
            try:
                async with asyncio.timeout(20):
                    for _ in range(3):
                        await asyncio.gather(*(send(new_job(queue=MAIL, key=key)) for key in [*keys, None]))
                assert not any(task.done() for task in held)
            finally:
                theirs.commit()
            return await asyncio.gather(*held, return_exceptions=True)

    with psycopg.connect(database) as theirs:
        theirs.execute("select faultline.enqueue('theirs', queue => 'mail')")
        theirs.commit()
        theirs.execute("select faultline.enqueue('theirs', queue => 'mail', key => 'held')")
        answers = asyncio.run(main(theirs))

    assert [type(answer) for answer in answers] == [KeyConflict] * 3


@pytest.fixture
def heard(database):
    """What a listening worker hears."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("listen faultline")
        yield lambda seconds=0.5: Counter(note.payload for note in conn.notifies(timeout=seconds))


@pytest.mark.usefixtures("patient")
def test_a_batch_wakes_each_queue_and_not_for_each_job(database, heard):
    queues = [f"q{number}" for number in range(5)]

    async def main():
        async with BusyApp(database) as busy:
            await busy.let_go()
            await asyncio.gather(*(busy.add(new_job(queue=queue)) for queue in queues))
            await asyncio.sleep(0.1)
            heard(0.2)
            await busy.shut()
            later = [busy.add(new_job(queue="q0", delay=timedelta(days=1))) for _ in range(3)]
            waiting = [busy.add(new_job(queue=queue)) for queue in queues[1:] for _ in range(30)]
            await asyncio.sleep(0)
            await busy.let_go()
            await asyncio.gather(*waiting, *later)

    asyncio.run(main())

    told = heard()
    assert set(told) - {MAIL} == set(queues[1:])
    assert max(told.values()) <= 2


@pytest.mark.parametrize("form", FORMS)
def test_a_hint_that_fails_fails_no_caller(database, form):
    callers = form(Faultline(database))
    callers.all_at_once([new_job(queue=queue) for queue in ("a", "b", "c")])
    with psycopg.connect(database) as conn:
        conn.execute("drop function faultline.wake, faultline.wake_each")

    for _ in range(3):
        answers = callers.all_at_once([new_job(queue=queue) for queue in "abcabcabc"])
        assert len(set(answers)) == 9
        assert all(isinstance(answer, int) for answer in answers)
    callers.close()


@pytest.mark.parametrize("form", FORMS)
def test_each_job_is_told_as_an_event(database, form):
    callers = form(Faultline(database))
    told = []
    stop = listen(lambda name, facts: told.append(facts["job_id"]) if name == "enqueued" else None)

    answers = callers.all_at_once([new_job(queue=MAIL) for _ in range(30)])

    stop()
    assert sorted(told) == sorted(answers)
    callers.close()


def test_each_loop_has_a_line_of_its_own(database):
    app = Faultline(database)
    answers: list[object] = []

    def loop():
        async def main():
            answers.extend(
                await asyncio.gather(*(app._sender.aenqueue(new_job(queue=MAIL)) for _ in range(30)))
            )
            await app.aclose()

        asyncio.run(main())

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(set(answers)) == 90
    assert len(app._sender._lines._by_loop) == 0, "a line outlives its loop"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("patient")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_does_not_wait_for_the_calls_of_its_parent(database):
    app = Faultline(database)
    app._sender.enqueue(new_job(queue=MAIL))
    with psycopg.connect(database) as theirs:
        theirs.execute(
            "select faultline.enqueue('t', queue => 'fresh')"
        )  # it creates the queue, and stays open
        leader = threading.Thread(target=lambda: app._sender.enqueue(new_job(queue="fresh")))
        leader.start()
        with psycopg.connect(database, autocommit=True) as conn:
            waiting = "select from pg_stat_activity where wait_event_type = 'Lock'"
            eventually(lambda: conn.execute(waiting).fetchall())
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(20)  # the lines of its parent would have it wait for longer
                ids = InThreads(app).all_at_once([new_job(queue=MAIL) for _ in range(10)])
                status = 0 if len(set(ids)) == 10 else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        theirs.rollback()
        leader.join(60)

    assert status == 0
    app.close()


def test_the_thread_of_a_line_ends_when_it_has_nothing_to_do(database, monkeypatch):
    monkeypatch.setattr(thread_line, "IDLE_SECONDS", 0.05)
    app = Faultline(database)
    callers = InThreads(app)

    for _ in range(3):
        assert len(set(callers.all_at_once([new_job(queue=MAIL) for _ in range(10)]))) == 10
        eventually(lambda: "faultline-enqueue" not in [thread.name for thread in threading.enumerate()])
    callers.close()


def test_callers_that_are_all_cancelled_leave_a_line_that_works(database):
    """As `asyncio.run` does it at its end."""

    async def main():
        async with Faultline(database) as app:
            await app._sender.aenqueue(new_job(queue=MAIL))
            for turns in range(6):
                waiting = [asyncio.create_task(app._sender.aenqueue(new_job(queue=MAIL))) for _ in range(50)]
                for _ in range(turns):
                    await asyncio.sleep(0)
                for task in waiting:
                    task.cancel()
                await asyncio.wait(waiting)
            async with asyncio.timeout(30):
                return await asyncio.gather(*(app._sender.aenqueue(new_job(queue=MAIL)) for _ in range(50)))

    assert len(set(asyncio.run(main()))) == 50


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("has_begun", [False, True])
def test_callers_whose_carrier_is_cancelled_are_told(database, has_begun):
    """Only a program that cancels every task of its loop does that."""

    async def main():
        async with BusyApp(database) as busy:
            line = busy.sender._lines.of_this_loop(new_job())
            waiting = [busy.add(new_job(queue=MAIL)) for _ in range(260)]
            await asyncio.sleep(0)
            await busy.let_go()
            while line._carrier is None:  # noqa: ASYNC110 - the next turn is too late
                await asyncio.sleep(0)
            if has_begun:
                await asyncio.sleep(0)
            line._carrier.cancel()
            async with asyncio.timeout(30):
                return await asyncio.gather(*waiting, return_exceptions=True)

    answers = asyncio.run(main())

    sent = 250 if has_begun else 0
    assert [type(answer) for answer in answers] == [OutcomeUnknown] * sent + [int] * (260 - sent)
