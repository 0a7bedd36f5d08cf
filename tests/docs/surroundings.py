"""What stands around the fragments of Python in the documents: the names that their pages speak of."""

import asyncio  # noqa: F401
import contextlib  # noqa: F401
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

from faultline import *  # noqa: F403
from faultline import Faultline, Job, OutOfBounds  # noqa: F401

dsn = os.environ["FAULTLINE_DSN"]
app = Faultline(dsn)


class Connection(psycopg.Connection[Any]):
    """Does nothing for a statement that the page leaves open (`insert into orders ...`)."""

    def execute(self, query: Any, *args: Any, **options: Any) -> Any:
        return super().execute("select" if str(query).endswith("...") else query, *args, **options)


parts = conninfo_to_dict(dsn)
url = URL.create(
    "postgresql+psycopg", username=str(parts["user"]), database=str(parts["dbname"]),
    query={"host": str(parts["host"]), "port": str(parts["port"])},
)  # fmt: skip
async_url = url.set(drivername="postgresql+asyncpg")
pg_url = f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}"
conn = Connection.connect(dsn, autocommit=True)
conn.execute("create table if not exists orders (id bigint primary key, paid boolean not null default false)")
conn.execute("create table if not exists payments (job_id bigint, token bigint, amount numeric)")
conn.execute("insert into orders (id) values (7) on conflict do nothing")


@app.task(queue="billing")
async def charge(job: Job, order_id: int) -> str:
    return f"order {order_id} in job {job.id}"


@dataclass
class Letter:
    id: int
    text: str = ""


@app.task
def rebuild(tenant: int, reason: str = "") -> None: ...


def too_early(order_id: int) -> bool:
    return False


provider = SimpleNamespace(charge=lambda *args, **options: None)
orders = [7, 8]
ids: list[int] = []
now = datetime.now(UTC)
tomorrow = now + timedelta(days=1)
