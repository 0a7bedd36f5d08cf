"""What every promise needs: a store, a clock, and sessions that can wait for each other."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.promises.rewriting import shipped_source
from tests.promises.sessions import Session
from tests.recycled_databases import Preparation


def with_effects(dsn: str) -> None:
    """The user's own table."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table effects (note text)")


@pytest.fixture
def prepared(request: pytest.FixtureRequest) -> tuple[Preparation, ...]:
    return (with_effects,) if "effects" in request.fixturenames else ()


@pytest.fixture
def effects(db: psycopg.Connection[Any]) -> Callable[[], int]:
    """How many rows the user's own table holds."""
    return lambda: db.execute("select count(*) from effects").fetchone()[0]


@pytest.fixture
def old_server(db: psycopg.Connection[Any]) -> None:
    """This server has been up for days, says a function that a test may replace: young ones hold fire."""
    db.execute(
        "create function test_start() returns timestamptz language sql as"
        " $$ select clock_timestamp() - interval '3 days' $$"
    )
    source = shipped_source(db, "round")
    db.execute(source.replace("pg_postmaster_start_time()", "public.test_start()").encode())


@pytest.fixture
def session(database: str) -> Iterator[Callable[..., Session]]:
    """Make as many sessions as the test asks for; they end with it, even when they are left waiting."""
    made: list[Session] = []

    def make(**options: Any) -> Session:
        made.append(Session(database, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
