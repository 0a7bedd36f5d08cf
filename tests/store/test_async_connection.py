"""The connection of a worker's lines: it waits as the driver does, and costs less."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.pq import ConnStatus

from faultline.store.call import Call
from faultline.store.driver.async_connection import AsyncPqConnection
from faultline.store.driver.connect import aconnect
from tests.support_proxy import Proxy
from tests.worker.harness import eventually

LARGE = 8_000_000


async def open_lean(dsn: str) -> AsyncPqConnection:
    return await aconnect(dsn, AsyncPqConnection)


def test_a_large_question_and_a_large_reply_come_through_whole(database):
    async def ask() -> None:
        async with await open_lean(database) as conn:
            found = await (await conn.execute("select %s::text", ["x" * LARGE])).fetchone()
            assert found == ("x" * LARGE,)
            many = await (await conn.execute("select n from generate_series(1, 100000) as n")).fetchall()
            assert many[-1] == (100_000,)

    asyncio.run(ask())


def test_others_have_their_turn_while_it_waits(database):
    async def ask() -> None:
        async with await open_lean(database) as conn:
            waiting = asyncio.create_task(conn.execute("select pg_sleep(0.3)"))
            turns = 0
            while not waiting.done():
                await asyncio.sleep(0.01)
                turns += 1
            assert turns > 3

    asyncio.run(ask())


def test_a_statement_without_a_waiter_ends_in_the_server(database, db):
    async def ask() -> None:
        conn = await open_lean(database)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await conn.execute("select pg_sleep(3600)")
        at_work = "select state = 'active' from pg_stat_activity where pid = %s"
        pid = conn.info.backend_pid
        # Still open here: closing it would end it, too.
        await asyncio.to_thread(eventually, lambda: db.execute(at_work, [pid]).fetchone() == (False,))
        await conn.close()

    asyncio.run(ask())


def test_a_server_that_hangs_up_is_an_error_of_the_driver(database, db):
    async def ask() -> None:
        conn = await open_lean(database)
        pid = conn.info.backend_pid
        waiting = asyncio.create_task(conn.execute("select pg_sleep(3600)"))
        await asyncio.sleep(0.1)
        db.execute("select pg_terminate_backend(%s)", [pid])
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(60):
                await waiting

    asyncio.run(ask())


def on_uvloop(work: Coroutine[Any, Any, None]) -> None:
    pytest.importorskip("uvloop").run(work)


@pytest.mark.parametrize("run", [asyncio.run, on_uvloop], ids=["asyncio", "uvloop"])
def test_a_session_that_ended_while_idle_is_noticed_by_the_next_call(
    database: str, db: Any, run: Callable[[Coroutine[Any, Any, None]], None]
):
    """Over TCP a reset answers the call, behind the server's last words; uvloop does not report it."""

    async def ask(dsn: str) -> None:
        conn = await open_lean(dsn)
        await conn.execute("select 1")
        db.execute("select pg_terminate_backend(%s, 10000)", [conn.info.backend_pid])
        await asyncio.sleep(0.2)
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(60):
                await conn.execute("select 1")
        await conn.close()

    with Proxy(database) as proxy:
        run(ask(proxy.dsn))


@pytest.mark.parametrize("run", [asyncio.run, on_uvloop], ids=["asyncio", "uvloop"])
def test_a_line_that_was_reset_leaves_its_number_at_once(
    database: str, run: Callable[[Coroutine[Any, Any, None]], None]
):
    """The loop knows a socket by its number: not told of its end, it takes the next one for it."""

    async def ask(proxy: Proxy) -> None:
        with low_numbers_taken():
            conn = await open_lean(proxy.dsn)
        await conn.listen(lambda _: None, lambda: None)
        heir = asyncio.create_task(follow(conn, conn.pgconn.socket))
        asyncio.get_running_loop().call_later(0.1, proxy.reset)
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(60):
                await conn.execute("select pg_sleep(3600)")
        await heir
        await conn.close()

    with Proxy(database) as proxy:
        run(ask(proxy))


async def follow(conn: AsyncPqConnection, number: int) -> None:
    """Take its number as soon as it is free, before another task has a turn."""
    while conn.pgconn.status == ConnStatus.OK:  # noqa: ASYNC110 - no event tells it
        await asyncio.sleep(0)
    await listen_as(number)


@contextlib.contextmanager
def low_numbers_taken() -> Iterator[None]:
    """What is opened here gets a number that nothing else opened later gets by itself."""
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield


async def listen_as(number: int) -> None:
    """Another socket under this number, of which the loop tells."""
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)  # it is free
    near, far = socket.socketpair()
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    with near, far:
        os.dup2(near.fileno(), number)
        loop.add_reader(number, heard.set)
        far.send(b"x")
        async with asyncio.timeout(60):
            await heard.wait()
        loop.remove_reader(number)
        os.close(number)


def test_a_refused_call_leaves_the_line_listening(database: str, db: Any):
    async def ask() -> None:
        heard: list[str | None] = []
        async with await open_lean(database) as conn:
            await conn.listen(heard.append, lambda: None)
            with pytest.raises(psycopg.errors.UndefinedFunction):
                await conn.wait(conn.prepared_calls.carry(Call("no_such_verb", {}, list)))
            heard.clear()
            db.execute("select pg_notify('faultline', 'work')")
            async with asyncio.timeout(60):
                while not heard:  # noqa: ASYNC110 - it is told, not awaited
                    await asyncio.sleep(0.01)

    asyncio.run(ask())
