"""An app whose handlers meet a server that has just turned read-only; children import it."""

import os
from typing import Any

import psycopg

from faultline import Faultline
from faultline.errors import ReadOnlyServer
from faultline.job import Job

app = Faultline()

INSERT = "insert into effects (job_id, token, said) values (%s, %s, 'written')"


def turn(word: str) -> None:
    """Have the server take no writes, or take them; sessions that begin now have heard of it."""
    with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
        conn.execute(f"alter system set default_transaction_read_only = {word}".encode())
        conn.execute("select pg_reload_conf()")
    while True:
        with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
            if conn.execute("show default_transaction_read_only").fetchone() == (word,):
                return


class Wrapped(Exception):
    """What a library makes of the driver's errors."""


def _write(job: Job, then: str) -> None:
    with job.complete(result="done") as conn:
        if then == "forbid":
            conn.execute("set transaction read only")
        try:
            conn.execute(INSERT, [job.id, job.token])
        except psycopg.Error as error:
            if then == "wrap":
                raise Wrapped("the library says no") from error
            raise


async def _write_async(job: Job, then: str) -> None:
    async with job.complete(result="done") as conn:
        if then == "forbid":
            await conn.execute("set transaction read only")
        try:
            await conn.execute(INSERT, [job.id, job.token])
        except psycopg.Error as error:
            if then == "wrap":
                raise Wrapped("the library says no") from error
            raise


def turned_back(error: BaseException) -> Any:
    """The server takes writes again, before the worker tells how the attempt ended."""
    turn("off")
    return error


def _in_thread(job: Job, then: str) -> None:
    if then in ("turn", "wrap") and job.token == 2:  # the first of these jobs has made the pool's session
        turn("on")
    try:
        _write(job, then)
    except (ReadOnlyServer, psycopg.Error, Wrapped) as error:
        raise turned_back(error)  # noqa: B904 - the very same


async def _in_loop(job: Job, then: str) -> None:
    if then in ("turn", "wrap") and job.token == 2:
        turn("on")
    try:
        await _write_async(job, then)
    except (ReadOnlyServer, psycopg.Error, Wrapped) as error:
        raise turned_back(error)  # noqa: B904 - the very same


@app.task
def in_thread(job: Job, then: str = "") -> None:
    _in_thread(job, then)


@app.task
async def in_loop(job: Job, then: str = "") -> None:
    await _in_loop(job, then)


@app.task(run="process")
def in_child(job: Job, then: str = "") -> None:
    _in_thread(job, then)


@app.task(run="process")
async def in_child_loop(job: Job, then: str = "") -> None:
    await _in_loop(job, then)
