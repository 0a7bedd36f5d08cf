"""One database for all the lives of a module, emptied before each: making one costs more than a life."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from faultline.store.pool import Store
from tests.support import Clock

TABLES = ("active", "later", "dead", "ledger", "refusals", "keys", "lanes", "queues", "workers")


@dataclass(frozen=True)
class House:
    """A database, who carries calls to it, its clock, and a plain connection."""

    store: Store
    clock: Clock
    db: psycopg.Connection[Any]

    def empty(self) -> None:
        for table in TABLES:
            self.db.execute(f"delete from faultline.{table}".encode())
        self.db.execute("select setval('faultline.places', 1, false), setval('faultline.tokens', 1, false)")
        self.db.execute(
            "update faultline.rounds set hold_until = '-infinity', gap_at = '{}', walked_at = '-infinity'"
        )
        self.db.execute("update test_clock.skew set skew = '0'")
        self.db.execute("drop table if exists effects")


@pytest.fixture(scope="module")
def built(shared: str) -> Iterator[House]:
    store = Store(shared)
    with psycopg.connect(shared, autocommit=True) as db:
        yield House(store, Clock(shared), db)
    store.close()


@pytest.fixture
def house(built: House) -> House:
    """The module's database, as if it were new."""
    built.empty()
    return built
