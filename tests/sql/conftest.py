"""What every test of the SQL needs: a store on a database of its own, and a clock to move."""

import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from faultline.store.run import Store
from tests.support import Clock


@pytest.fixture(scope="module")
def shared(server: Any, template: str) -> Iterator[str]:
    """The DSN of one database for a whole module, where the point of its tests is that nothing changes."""
    name = f"test_{secrets.token_hex(6)}"
    server.create_database(name, template)
    yield server.dsn(name)
    server.drop_database(name)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    store = Store(database)
    yield store
    store.close()


@pytest.fixture
def clock(database: str) -> Clock:
    return Clock(database)


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A plain connection, as a person with psql has it."""
    with psycopg.connect(database, autocommit=True) as conn:
        yield conn
