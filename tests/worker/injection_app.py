"""An app with all there is around its handlers; a module, since child processes have to import it."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from faultline import Faultline, Job, SyncTransaction, Transaction
from faultline.retry import Constant
from tests.support import TAKE_OVER

app = Faultline()
LATER = Constant(timedelta(hours=1))
INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"


def note(said: Any) -> None:
    """What the child was given is in its environment: its worker's database."""
    with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
        conn.execute("insert into notes (job_id, token, said) values (0, %s, %s)", [os.getpid(), str(said)])


class Client:
    def __init__(self) -> None:
        self.pid = os.getpid()


class AsyncClient(Client):
    pass


@app.resource
def client() -> Iterator[Client]:
    note("open")
    yield Client()
    note("close")


@app.resource
async def async_client() -> AsyncIterator[AsyncClient]:
    note("open")
    yield AsyncClient()
    note("close")


@app.on_startup
def begin() -> None:
    if os.environ.get("FAULTLINE_DSN"):  # set in children alone
        note("startup")


@app.on_shutdown
async def end() -> None:
    if os.environ.get("FAULTLINE_DSN"):
        note("shutdown")


@app.middleware
def around(job: Job, call: Callable[[], Any]) -> Any:
    value = call()
    return {"around": value} if isinstance(value, dict) else value


@app.middleware
async def async_around(job: Job, call: Callable[[], Awaitable[Any]]) -> Any:
    value = await call()
    return {"around": value} if isinstance(value, dict) else value


@app.task(run="process")
def pids(client: Client) -> dict[str, int]:
    return {"pid": os.getpid(), "of_client": client.pid}


@app.task(run="process")
async def async_pids(client: AsyncClient) -> dict[str, int]:
    return {"pid": os.getpid(), "of_client": client.pid}


def _then(job: Job, then: str) -> None:
    if then == "fail":
        raise ValueError("no such order")
    if then == "steal":
        with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
            conn.execute(TAKE_OVER, [job.id])
    if then == "die":
        os._exit(7)


@app.task(run="process", retry=LATER)
def charge(job: Job, tx: SyncTransaction, then: str = "") -> str:
    tx.execute(INSERT, [job.id, job.token, "written"])
    _then(job, then)
    return "charged"


@app.task(run="process", retry=LATER)
async def charge_async(job: Job, tx: Transaction, then: str = "") -> str:
    await tx.execute(INSERT, [job.id, job.token, "written"])
    await asyncio.to_thread(_then, job, then)
    return "charged"


def _session() -> Session:
    """Made in the child: its database is in its environment."""
    dsn = os.environ["FAULTLINE_DSN"]
    make = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)
    return Session(make)


app.transactions.register(Session, _session)


@app.task(run="process", retry=LATER)
def charge_in_session(job: Job, session: Session, then: str = "") -> str:
    values = {"id": job.id, "token": job.token}
    session.execute(text("insert into effects (job_id, token, said) values (:id, :token, 'written')"), values)
    _then(job, then)
    return "charged"


@app.task(retry=LATER)
async def suspect(job: Job, tx: Transaction, client: AsyncClient) -> list[int]:
    await tx.execute(INSERT, [job.id, job.token, "written"])
    return [os.getpid(), client.pid]
