"""The app of the lab: effects through `job.complete`, and a note of each start outside the database."""

import asyncio
import json
import os
import time
from typing import Final

from faultline import Faultline, Job

app = Faultline()
WHO: Final = os.environ.get("HA_WHO", "?")
WRITE: Final = "insert into effects (n, job_id, token, who) values (%s, %s, %s, %s)"


def note(what: str, job: Job, n: int) -> None:
    """What the world outside sees, in its own order: one line, appended whole."""
    line = {
        "t": time.time(), "what": what, "who": WHO, "id": job.id, "n": n, "token": job.token,
        "attempt": job.attempt, "key": job.idempotency_key("charge"),
    }  # fmt: skip
    with open(os.environ["HA_NOTES"], "a", buffering=1) as file:  # noqa: PTH123
        file.write(json.dumps(line) + "\n")


@app.task(queue="default", max_attempts=30)
async def work(job: Job, n: int, ms: int) -> None:
    note("start", job, n)
    await asyncio.sleep(ms / 1000)
    async with job.complete() as conn:
        await conn.execute(WRITE, [n, job.id, job.token, WHO])
    note("committed", job, n)


@app.task(queue="default", max_attempts=30)
def threaded(job: Job, n: int, ms: int) -> None:
    note("start", job, n)
    job.wait_lost(ms / 1000)
    with job.complete() as conn:
        conn.execute(WRITE, [n, job.id, job.token, WHO])
    note("committed", job, n)


@app.task(queue="default", max_attempts=30)
async def plain(job: Job, n: int, ms: int) -> int:
    note("start", job, n)
    await asyncio.sleep(ms / 1000)
    return n
