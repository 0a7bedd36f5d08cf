"""What tests of the client need: an app on a database of its own, with a few tasks."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from faultline import Faultline, Job, Task


@dataclass(frozen=True)
class Shop:
    """An app and its tasks."""

    app: Faultline
    charge: Task[..., str]
    ping: Task[..., None]


@pytest.fixture
def shop(database: str) -> Iterator[Shop]:
    app = Faultline(database)

    @app.task(queue="billing", max_attempts=5, timeout=timedelta(minutes=5))
    def charge(job: Job, order_id: int, note: str = "") -> str:
        return f"charged {order_id}"

    @app.task
    async def ping() -> None: ...

    yield Shop(app, charge, ping)
    app.close()


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A plain connection, as a caller of ours has it."""
    with psycopg.connect(database) as conn:
        yield conn
