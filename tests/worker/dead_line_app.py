"""Handlers in a transaction block, for a line that goes dead; each writes down when it is out."""

import asyncio
import time
from pathlib import Path

from faultline import Faultline
from faultline.job import Job

app = Faultline()

SECONDS = 300.0


def _note(place: str, word: str) -> None:
    with Path(place).open("a") as file:
        file.write(word + "\n")


def _began_before(place: str) -> bool:
    return Path(place).exists()


async def in_a_query(job: Job, place: str) -> None:
    """Waits for an answer of the server."""
    if _began_before(place):
        return
    try:
        async with job.complete() as conn:
            _note(place, "in")
            await conn.execute("select pg_sleep(%s)", [SECONDS])
    finally:
        _note(place, "out")


async def between_queries(job: Job, place: str) -> None:
    """Waits for something else, with its transaction open, and a savepoint in it."""
    if _began_before(place):
        return
    try:
        async with job.complete() as conn, conn.transaction():
            await conn.execute("select 1")
            _note(place, "in")
            await asyncio.sleep(SECONDS)
    finally:
        _note(place, "out")


def in_a_query_plainly(job: Job, place: str) -> None:
    if _began_before(place):
        return
    try:
        with job.complete() as conn:
            _note(place, "in")
            conn.execute("select pg_sleep(%s)", [SECONDS])
    finally:
        _note(place, "out")


def between_queries_plainly(job: Job, place: str) -> None:
    if _began_before(place):
        return
    try:
        with job.complete() as conn, conn.transaction():
            conn.execute("select 1")
            _note(place, "in")
            job.wait_lost(SECONDS)
            time.sleep(0.05)
            conn.execute("select 2")
    finally:
        _note(place, "out")


@app.task(run="process")
async def query_in_a_child(job: Job, place: str) -> None:
    await in_a_query(job, place)


@app.task(run="process")
def block_in_a_child(job: Job, place: str) -> None:
    between_queries_plainly(job, place)
