"""The entry points that bad input reaches, each on a database of the test's own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
import pytest

from faultline import Faultline
from faultline.store.pool import Store
from tests.bad_input.entry_points import EntryPoints
from tests.support import contents


@pytest.fixture
def app(database: str) -> Iterator[Faultline]:
    app = Faultline(database)
    yield app
    app.close()


@pytest.fixture
def entries(store: Store, db: psycopg.Connection[Any], app: Faultline) -> EntryPoints:
    return EntryPoints(store, db, app)


@pytest.fixture
def nothing_changes(database: str) -> Callable[[], AbstractContextManager[None]]:
    """Around what must be refused: afterwards every row of every table is as it was."""

    @contextmanager
    def guard() -> Iterator[None]:
        before = contents(database)
        yield
        assert contents(database) == before

    return guard
