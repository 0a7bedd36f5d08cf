"""A store for async code, keys to show, and an authenticator with a clock of its own."""

import asyncio

import psycopg
import pytest

from faultline.server.auth import Authenticator, acting, mint
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.conftest import a_database

FILLED = ("acts", "api_keys", "active", "later", "dead", "ledger", "refusals", "keys", "lanes", "queues")


@pytest.fixture
def database(request, server, template):
    """The module's database, emptied; one of its own for a test that moves the clock."""
    if "clock" in request.fixturenames:
        yield from a_database(server, template)
        return
    dsn = request.getfixturevalue("shared")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(";".join(f"delete from faultline.{table}" for table in FILLED))
    yield dsn  # noqa: PT022 (the first branch has its teardown in a_database)


@pytest.fixture
def aio():
    """Carry a coroutine to its end, all of a test's in one loop."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def astore(aio, database):
    """Calls carried by async code to the test's own database, over one connection."""
    store = AsyncStore(database, connections_max=1)
    yield store
    aio(store.close())


@pytest.fixture
def acted(aio, astore):
    """Carry calls as one act of a caller."""

    async def act(caller, reason, *asked):
        async with acting(astore, caller, reason) as carrier:
            return [await carrier.run(call) for call in asked]

    return lambda *told: aio(act(*told))


class Ticking:
    """A monotonic clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def ticking():
    return Ticking()


@pytest.fixture
def authenticator(astore, ticking):
    return Authenticator(astore, clock=ticking)


@pytest.fixture
def who(aio, authenticator):
    """Show a key to the authenticator."""
    return lambda text, loopback=False: aio(authenticator.who(text, loopback=loopback))


@pytest.fixture
def made(store):
    """Make a key of these rights; it comes with its text."""

    def make(name="ops", scopes=("read",), queues=None, expires_at=None):
        key = mint()
        store.run(calls.create_key(key.id, key.hash, name, scopes, queues, expires_at))
        return key

    return make
