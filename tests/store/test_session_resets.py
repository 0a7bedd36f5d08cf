"""Sessions that are made as new behind their user: without a wait, and nothing that was left is found."""

import asyncio
import threading
import time

import pytest

from faultline.store import calls
from faultline.store.pool import AsyncStore, Store, async_pool, plain_pool
from faultline.worker.transactions.transaction import AS_NEW
from tests.worker.harness import eventually, execute, rows

LEFT = "set search_path to pg_temp; select pg_advisory_lock(7)"
SLEEP = b"select pg_sleep(0.5)"
FAIL = b"reset all; select 1 / 0; reset all"


def locks(dsn: str) -> int:
    return int(rows(dsn, "select count(*) from pg_locks where locktype = 'advisory' and objid = 7")[0][0])


@pytest.fixture
def threads(database):
    store = Store(database, connections_max=1)
    yield store
    store.close()


def test_what_a_user_left_is_gone_before_the_next_one_comes(database, threads):
    conn = threads.borrow()
    conn.execute(LEFT)
    threads.give_back(conn, AS_NEW)

    eventually(lambda: locks(database) == 0)
    again = threads.borrow()
    assert again is conn
    assert again.execute("show search_path").fetchone() == ('"$user", public',)
    threads.give_back(again)


def test_nobody_waits_for_a_reset_but_the_next_user(threads):
    conn = threads.borrow()
    began = time.monotonic()
    threads.give_back(conn, SLEEP)
    returned = time.monotonic() - began

    assert threads.run(calls.list_queues()) == []
    assert returned < 0.4 <= time.monotonic() - began


@pytest.mark.parametrize("wait", [0.0, 0.3])
def test_a_session_that_could_not_be_reset_is_not_lent_again(threads, wait):
    conn = threads.borrow()
    threads.give_back(conn, FAIL)
    time.sleep(wait)  # with it the reply has come, and is read without waiting

    again = threads.borrow()
    assert conn.closed
    assert again.execute("select 1").fetchone() == (1,)
    threads.give_back(again)


def test_a_session_killed_behind_its_user_is_not_lent_again(database, threads):
    conn = threads.borrow()
    threads.give_back(conn, SLEEP)
    execute(database, "select pg_terminate_backend(%s)", conn.info.backend_pid)

    assert threads.run(calls.list_queues()) == []
    assert conn.closed


def test_a_borrower_that_waits_in_the_pool_gets_the_session(threads):
    conn = threads.borrow()
    got: list[object] = []
    waiting = threading.Thread(target=lambda: got.append(threads.run(calls.list_queues())))
    waiting.start()
    eventually(lambda: threads._being_reset.borrowers)
    threads.give_back(conn, AS_NEW)
    waiting.join(30)

    assert got == [[]]


def test_a_session_whose_server_takes_no_writes_is_left_with_all_others(database):
    store = Store(database, connections_max=2)
    conns = [store.borrow(), store.borrow()]
    store.give_back(conns[0], AS_NEW)
    conns[1].refuses_writes, conns[1]._began_read_only = True, False
    store.give_back(conns[1], AS_NEW)

    assert all(conn.closed for conn in conns)
    assert store.run(calls.list_queues()) == []
    store.close()


def test_sessions_being_reset_count_as_free_and_are_closed_with_the_store(threads):
    conn = threads.borrow()
    assert threads.in_use() == (1, 1)
    threads.give_back(conn, SLEEP)
    assert threads.in_use() == (1, 0)
    threads.close()
    assert conn.closed


def test_a_session_nobody_wants_goes_back_to_the_pool(threads, monkeypatch):
    monkeypatch.setattr(plain_pool, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr("faultline.store.driver.resetting.IDLE_SECONDS", 0.1)
    conn = threads.borrow()
    threads.give_back(conn, AS_NEW)

    eventually(lambda: not threads._being_reset)
    eventually(lambda: threads.in_use() == (1, 0))
    assert not conn.closed


def in_the_loop(database, *works):
    async def run() -> None:
        for work in works:
            store = AsyncStore(database, connections_max=1)
            try:
                await work(store)
            finally:
                await store.close()

    asyncio.run(run())


def test_in_the_loop_it_is_the_same(database, monkeypatch):
    monkeypatch.setattr(async_pool, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr("faultline.store.driver.resetting.IDLE_SECONDS", 0.1)

    async def gone(store: AsyncStore) -> None:
        conn = await store.borrow()
        await conn.execute(LEFT)
        await store.give_back(conn, AS_NEW)
        again = await store.borrow()
        assert again is conn
        assert await (await again.execute("show search_path")).fetchone() == ('"$user", public',)
        assert locks(database) == 0
        await store.give_back(again)

    async def nobody_waits(store: AsyncStore) -> None:
        began = time.monotonic()
        await store.give_back(await store.borrow(), SLEEP)
        assert time.monotonic() - began < 0.5
        assert await store.run(calls.list_queues()) == []
        assert time.monotonic() - began >= 0.4

    async def failed(store: AsyncStore) -> None:
        for wait in (0.0, 0.3):
            conn = await store.borrow()
            await store.give_back(conn, FAIL)
            await asyncio.sleep(wait)
            again = await store.borrow()
            assert conn.closed
            await store.give_back(again)

    async def killed(store: AsyncStore) -> None:
        conn = await store.borrow()
        await store.give_back(conn, SLEEP)
        execute(database, "select pg_terminate_backend(%s)", conn.info.backend_pid)
        assert await store.run(calls.list_queues()) == []
        assert conn.closed

    async def waiting(store: AsyncStore) -> None:
        conn = await store.borrow()
        other = asyncio.create_task(store.run(calls.list_queues()))
        await asyncio.to_thread(eventually, lambda: store._being_reset.borrowers)
        await store.give_back(conn, AS_NEW)
        assert await asyncio.wait_for(other, 30) == []

    async def cancelled(store: AsyncStore) -> None:
        conn = await store.borrow()
        await store.give_back(conn, b"select pg_sleep(5)")
        waits = asyncio.create_task(store.borrow())
        await asyncio.sleep(0.2)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert conn.closed
        assert await store.run(calls.list_queues()) == []

    async def idle(store: AsyncStore) -> None:
        conn = await store.borrow()
        await store.give_back(conn, AS_NEW)
        await asyncio.to_thread(eventually, lambda: not store._being_reset)
        assert store.in_use() == (1, 0)
        assert not conn.closed

    in_the_loop(database, gone, nobody_waits, failed, killed, waiting, cancelled, idle)


def test_a_reset_goes_with_the_next_begin_and_stays_though_that_rolls_back(database):
    async def together(store: AsyncStore) -> None:
        conn = await store.borrow()
        await conn.execute(LEFT)
        await store.give_back(conn, AS_NEW)
        again = await store.borrow(resets=True)
        assert again is conn
        await again.wait(again.prepared_calls.begin(None, again.take_reset()))
        assert locks(database) == 0
        await again.rollback()
        assert await (await again.execute("show search_path")).fetchone() == ('"$user", public',)
        await store.give_back(again)

    in_the_loop(database, together)


def test_a_reset_does_not_wait_for_a_begin_that_never_comes(database):
    async def alone(store: AsyncStore) -> None:
        conn = await store.borrow()
        await conn.execute(LEFT)
        await store.give_back(conn, AS_NEW)
        await asyncio.to_thread(eventually, lambda: locks(database) == 0)

    in_the_loop(database, alone)
