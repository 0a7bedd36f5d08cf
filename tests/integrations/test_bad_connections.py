"""What `job.complete_in` is given in place of a connection: each mistake has a name, and completes no job."""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from faultline.job import Job
from faultline.store import calls
from tests.integrations.carriers import url
from tests.support import enqueue, outcomes
from tests.worker.harness import drain


def closed(dsn: str) -> Any:
    conn = psycopg.connect(dsn)
    conn.close()
    return conn


def failed(dsn: str) -> Any:
    """A transaction in which a statement has failed: it takes nothing more."""
    conn = psycopg.connect(dsn)
    with pytest.raises(psycopg.Error):
        conn.execute("select 1 / 0")
    return conn


def of_another_kind(dsn: str) -> Any:
    return Session(sa.create_engine("sqlite://"))


def unbound(dsn: str) -> Any:
    return Session()


def close(made: Any) -> None:
    for owner in (made, made.connection if isinstance(made, psycopg.Cursor) else None):
        if hasattr(owner, "close"):
            owner.close()


PLAIN: dict[str, tuple[Callable[[str], Any], str]] = {
    "nothing": (lambda dsn: None, "InputError: job.complete_in takes a connection or session"),
    "a DSN": (lambda dsn: dsn, "not a str"),
    "an engine": (lambda dsn: sa.create_engine(url(dsn, "psycopg")), "not a sqlalchemy.engine.base.Engine"),
    "a cursor": (lambda dsn: psycopg.connect(dsn).cursor(), "not a psycopg.Cursor"),
    "a connection of sqlite3": (lambda dsn: sqlite3.connect(":memory:"), "not a sqlite3.Connection"),
    "a session of SQLite": (of_another_kind, "this connection is of sqlite"),
    "a session without an engine": (unbound, "UnboundExecutionError"),
    "a closed connection": (closed, "this connection was closed"),
    "a failed transaction": (failed, "current transaction is aborted"),
}


@pytest.mark.parametrize("what", PLAIN)
def test_what_is_no_connection_in_a_transaction_is_told_by_name(database, store, what):
    make, said = PLAIN[what]
    job = enqueue(store, task="write", max_attempts=1)

    given: list[Any] = []

    def write(job: Job) -> None:
        given.append(make(database))
        try:
            job.complete_in(given[0])
        finally:
            close(given[0])

    drain(database, write)

    assert outcomes(store, job) == ["dead"]
    assert said in (store.run(calls.get(job)).error or "")
