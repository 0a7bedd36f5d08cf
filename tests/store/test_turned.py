"""Sessions of a server that turned read-only are left, and the call is carried out where writes are taken."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from faultline import Faultline
from faultline.errors import ReadOnlyServer
from faultline.store import calls
from faultline.store.driver import listen
from faultline.store.driver.async_connection import AsyncPqConnection, SyncPqConnection
from faultline.store.pool import POOL_MAX, AsyncStore, Store
from faultline.store.servers.read_only import YOUNG_SECONDS
from tests.support import enqueue, new_job
from tests.support_turning import PATIENCE_SECONDS, a_pair


@pytest.fixture(scope="module")
def servers():
    with a_pair() as pair:
        pair.new.ask("select setval('faultline.places', 1000000)")  # no id is on both
        yield pair


@pytest.fixture
def pair(servers):
    """Both take writes, and nothing of an earlier test is there."""
    yield servers
    servers.old.take_writes()


class Plain:
    """Forms of plain code and of async code, told apart by nothing else."""

    def __init__(self, dsn):
        self.store = Store(dsn)
        self.app = Faultline(dsn=dsn)

    def run(self, call):
        return self.store.run(call)

    def enqueue_many(self, jobs):
        return self.app._sender.enqueue_many(jobs)

    def fill(self):
        """Have the pool make all its sessions."""
        with ThreadPoolExecutor(POOL_MAX) as threads:
            list(threads.map(lambda _: self._hold(), range(POOL_MAX)))

    def _hold(self):
        with self.store.connection() as conn:
            conn.execute("select pg_sleep(0.3)")

    def close(self):
        self.store.close()
        self.app.close()


class Looped:
    def __init__(self, dsn):
        self.store = AsyncStore(dsn)
        self.app = Faultline(dsn=dsn)
        self.runner = asyncio.Runner()

    def run(self, call):
        return self.runner.run(self.store.run(call))

    def enqueue_many(self, jobs):
        return self.runner.run(self.app._sender.aenqueue_many(jobs))

    def fill(self):
        async def hold():
            async with self.store.connection() as conn:
                await conn.execute("select pg_sleep(0.3)")

        async def all_of_them():
            await asyncio.gather(*(hold() for _ in range(POOL_MAX)))

        self.runner.run(all_of_them())

    def close(self):
        async def close():
            await self.store.close()
            await self.app.aclose()

        self.runner.run(close())
        self.runner.close()


@pytest.fixture(params=[Plain, Looped])
def client(request, pair):
    client = request.param(pair.dsn)
    yield client
    client.close()


def is_there(server, job_id):
    return server.ask("select count(*) from faultline.active where id = %s", job_id) == (1,)


def until_there(server, send):
    """Send until it arrives there, which takes the moment in which sessions learn of it; nothing raises."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_there(server, send()):
        assert time.monotonic() < until


def test_a_call_goes_on_to_the_server_that_takes_writes(pair, client):
    """Not one is refused: the session that was refused is left, and a new one finds the other server."""
    client.run(calls.enqueue(new_job()))
    pair.old.take_no_writes()

    until_there(pair.new, lambda: client.run(calls.enqueue(new_job())))


def test_all_sessions_of_the_pool_are_left(pair, client):
    client.fill()
    assert pair.old.sessions() >= POOL_MAX
    pair.old.take_no_writes()

    until_there(pair.new, lambda: client.run(calls.enqueue(new_job())))

    until = time.monotonic() + PATIENCE_SECONDS
    while pair.old.sessions():
        assert time.monotonic() < until
        client.run(calls.enqueue(new_job()))


class Slow:
    """Connections that are made while `holds` reach their pool only once they are let go."""

    def __init__(self):
        self.held = []
        self.holds = False
        self.let_go = threading.Event()

    def connect(self, make):
        def connected(*args, **options):
            conn = make(*args, **options)
            if self._keeps(conn):
                self.let_go.wait(PATIENCE_SECONDS)
            return conn

        return connected

    def aconnect(self, make):
        async def connected(*args, **options):
            conn = await make(*args, **options)
            if self._keeps(conn):
                await _until(self.let_go.is_set)
            return conn

        return connected

    def _keeps(self, conn):
        if self.holds:
            self.held.append(conn)
        return self.holds


@pytest.fixture
def slow(monkeypatch):
    slow = Slow()
    monkeypatch.setattr(SyncPqConnection, "connect", slow.connect(SyncPqConnection.connect))
    monkeypatch.setattr(AsyncPqConnection, "connect", slow.aconnect(AsyncPqConnection.connect))
    yield slow
    slow.let_go.set()


def test_a_session_that_was_being_made_when_its_server_turned_is_not_used(slow, pair, client):
    """It took writes when it was made, and came to the pool after the others had been left."""
    client.run(calls.enqueue(new_job()))
    slow.holds = True
    client.fill()
    slow.holds = False
    pair.old.take_no_writes()
    until_there(pair.new, lambda: client.run(calls.enqueue(new_job())))
    slow.let_go.set()

    until = time.monotonic() + PATIENCE_SECONDS
    while not all(conn.closed for conn in slow.held):
        assert time.monotonic() < until
        client.run(calls.enqueue(new_job()))
        assert not any(conn.refuses_writes for conn in slow.held)
    assert slow.held


def test_a_bulk_goes_on_to_the_server_that_takes_writes(pair, client):
    """Its jobs come from a generator, which is asked once: the session is looked at before the first."""
    client.enqueue_many([new_job()])
    pair.old.take_no_writes()

    until_there(pair.new, lambda: client.enqueue_many(new_job() for _ in range(3))[0])


def test_a_client_that_only_reads_does_not_go_on_reading_old_rows(pair, client):
    store = Store(pair.new.always_writable)
    job = enqueue(store)
    store.close()
    assert client.run(calls.get(job)) is None
    pair.old.take_no_writes()

    until = time.monotonic() + PATIENCE_SECONDS
    while client.run(calls.get(job)) is None:
        assert time.monotonic() < until


def test_where_there_is_no_other_server_sessions_are_not_made_over_and_over(pair):
    store = Store(pair.old.dsn)
    enqueue(store)
    pair.old.take_no_writes()
    began = time.monotonic()

    refused = 0
    while refused < 50:
        try:
            enqueue(store)
        except ReadOnlyServer:
            refused += 1

    turns = 1 + (time.monotonic() - began) / YOUNG_SECONDS
    assert store._pool.get_stats()["connections_num"] <= 5 + 4 * turns
    store.close()


def test_a_server_that_takes_writes_again_is_used_again(pair):
    store = Store(pair.old.dsn)
    enqueue(store)
    pair.old.take_no_writes()
    with pytest.raises(ReadOnlyServer):
        while True:
            enqueue(store)
    pair.old.take_writes()

    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            assert enqueue(store)
            break
        except ReadOnlyServer:  # a session that has not heard of it yet
            assert time.monotonic() < until
    store.close()


def test_who_listens_goes_on_to_the_server_that_takes_writes(pair, monkeypatch):
    monkeypatch.setattr(listen, "ASK_EVERY_SECONDS", 0.1)
    heard: list[str | None] = []

    async def test():
        listening = asyncio.create_task(listen.listen(pair.dsn, heard.append, lambda: 0.01))
        await _until(lambda: heard == [""])
        await asyncio.to_thread(pair.old.take_no_writes)
        await _until(lambda: heard == ["", None, ""])
        await asyncio.to_thread(pair.new.ask, "select pg_notify('faultline', 'billing')")
        await _until(lambda: "billing" in heard)
        listening.cancel()

    asyncio.run(test())


async def _until(look):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not look():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)
