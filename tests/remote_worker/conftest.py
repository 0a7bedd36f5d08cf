"""What tests of workers over a server need: one server for a file of them, before tables made empty."""

from collections.abc import Iterator

import pytest

from faultline.store import calls
from faultline.store.run import Store
from tests.conftest import Server, a_database
from tests.remote_worker.harness import Served
from tests.worker.conftest import TABLES
from tests.worker.harness import LEASE, execute

EMPTIED = (
    "truncate faultline.active, faultline.later, faultline.dead, faultline.ledger, faultline.refusals,"
    " faultline.keys, effects"
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
    execute(whole.dsn, EMPTIED)
    return whole


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
