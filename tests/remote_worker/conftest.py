"""What tests of workers over a server need: a database, a server before it, and a store to look with."""

from collections.abc import Iterator

import pytest

from faultline.store import calls
from faultline.store.run import Store
from tests.remote_worker.harness import Served
from tests.worker.conftest import TABLES
from tests.worker.harness import LEASE, execute


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """A store on this test's database, whose hold-fire is as short as the leases of these tests."""
    store = Store(database)
    store.run(calls.configure(default_lease=LEASE / 2))
    for name in ("effects", "notes"):
        execute(database, TABLES.format(name))
    yield store
    store.close()


@pytest.fixture
def served(database: str, store: Store) -> Iterator[Served]:
    """A server before this test's database."""
    server = Served(database)
    yield server
    server.close()
