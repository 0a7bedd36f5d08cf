"""The work of the fail points' suite: handlers of every kind, so that every point is reached."""

import asyncio
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from faultline import Cancel, Constant, Faultline, Job
from faultline.client import Task

EFFECT: Final = "insert into public.effects (job_id, token, attempt) values (%s, %s, %s)"
SOON: Final = Constant(timedelta(milliseconds=50))
ROUNDS: Final = 3

IS_VICTIM: Final = "FAULTLINE_FAILPOINTS" in os.environ

app = Faultline()


@app.task(retry=SOON)
async def look(job: Job) -> int:
    """Returns something, and is recorded in a batch."""
    return job.attempt


@app.task(retry=SOON)
async def stumble(job: Job) -> None:
    """Fails at its first attempt."""
    if job.attempt == 1:
        raise ConnectionError("the line was busy")


@app.task(retry=SOON)
async def withdraw() -> None:
    """Ends itself with an outcome that is recorded singly."""
    raise Cancel("no longer wanted")


@app.task(retry=SOON)
async def pay(job: Job) -> None:
    """Commits in the loop."""
    async with job.complete(result="paid") as conn:
        await conn.execute(EFFECT, [job.id, job.token, job.attempt])


@app.task(retry=SOON)
def post(job: Job) -> None:
    """Commits in a thread."""
    with job.complete(result="posted") as conn:
        conn.execute(EFFECT, [job.id, job.token, job.attempt])


@app.task(retry=SOON, run="process")
def render(job: Job) -> None:
    """Commits in a child process."""
    with job.complete(result="rendered") as conn:
        conn.execute(EFFECT, [job.id, job.token, job.attempt])


@app.task(retry=SOON)
async def wait(job: Job) -> None:
    """Takes longer than a lease where the fault is to strike: beats renew it, and a stop gives it back."""
    await asyncio.sleep(60 if IS_VICTIM else 0.05)
    async with job.complete(result="waited") as conn:
        await conn.execute(EFFECT, [job.id, job.token, job.attempt])


TASKS: Final[tuple[Task[..., Any], ...]] = (pay, post, render, look, stumble, withdraw, wait)
EFFECTIVE: Final = (pay.name, post.name, render.name, wait.name)
"""Tasks whose every success leaves its row among the effects."""


def keyed() -> Iterator[Task[..., Any]]:
    """Each job of a case, as a task with a key of its own: asked for twice, it is made once."""
    for turn in range(ROUNDS):
        for task in TASKS:
            yield task.using(key=f"{task.name}-{turn}")


JOBS: Final = ROUNDS * len(TASKS)
