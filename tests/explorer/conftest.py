"""A prepared stage in the test's own database."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from proof.explorer.stage import ExplorerDatabase, prepare


@pytest.fixture
def staged(database: str, db: psycopg.Connection[Any]) -> str:
    """The DSN of a database that can be explored."""
    if db.execute("show track_commit_timestamp").fetchone()[0] != "on":
        pytest.skip("the explorer asks which commit came first: the server needs track_commit_timestamp = on")
    prepare(database)
    return database


@pytest.fixture
def stage(staged: str) -> Iterator[ExplorerDatabase]:
    with ExplorerDatabase(staged) as stage:
        yield stage
