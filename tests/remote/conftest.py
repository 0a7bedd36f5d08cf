"""What tests of workers over a server need: one server for a file of them, before tables made empty."""

import time
from collections.abc import Iterator

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.conftest import a_database
from tests.remote.harness import Served
from tests.servers import Server
from tests.worker.conftest import TABLES
from tests.worker.harness import LEASE, execute

TABLES_EMPTIED = (
    "faultline.active, faultline.later, faultline.dead, faultline.ledger, faultline.refusals, faultline.keys,"
    " faultline.workers, faultline.known_tasks, faultline.worker_releases, effects"
)


@pytest.fixture(scope="module")
def whole(server: Server, template: str) -> Iterator[Served]:
    """A server before a database, for all tests of a file: starting one takes longer than most of them."""
    for dsn in a_database(server, template):
        store = Store(dsn)
        store.run(calls.configure(default_lease=LEASE / 2))
        store.close()
        for name in ("effects", "notes"):
            execute(dsn, TABLES.format(name))
        serving = Served(dsn)
        yield serving
        serving.close()


@pytest.fixture
def served(whole: Served) -> Served:
    """That server, at work again if the last test has killed it, before empty tables."""
    if not whole.alive:
        whole.start()
    empty(whole.dsn)
    return whole


def empty(dsn: str) -> None:
    """Truncate the tables of jobs while the server's watchdog goes on.

    Its chores lock these tables in more than one order, so a truncate that waits can meet a deadlock.
    """
    give_up_at = time.monotonic() + 30
    while True:
        try:
            execute(
                dsn, f"lock table {TABLES_EMPTIED} in access exclusive mode nowait; truncate {TABLES_EMPTIED}"
            )
        except psycopg.errors.LockNotAvailable:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
        else:
            return


@pytest.fixture
def database(served: Served) -> str:
    """The DSN of what stands behind the server."""
    return served.dsn


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """A store to look with."""
    store = Store(database)
    yield store
    store.close()
