"""The app that bench workers run: handlers that do little but note that they began."""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any, Final

from faultline.app import Faultline
from faultline.job import Job
from faultline.lab.bench.measure.start_times import StartTimes
from faultline.retry import Constant
from faultline.task import spec_of

app = Faultline()
start_times = cache(StartTimes.of_this_process)

FAILING_ONE_IN: Final = 10
RETRY_AFTER: Final = timedelta(milliseconds=100)

INSERT: Final = "insert into one_row (n) values (%s)"

_turn = threading.Lock()


@app.task
async def warm_up() -> None:
    """Before anything is counted."""
    start_times().note()


@app.task
async def noop(n: int, pad: str) -> None:
    """Nothing; what is measured is everything around it."""
    start_times().note()


@app.task
async def stamp(n: int) -> None:
    """Note the moment."""
    start_times().stamp(n)


@app.task
async def nap(ms: int) -> None:
    """Wait for something, as most handlers do."""
    start_times().note()
    await asyncio.sleep(ms / 1e3)


@app.task
def nap_thread(ms: int) -> None:
    """The same in a thread."""
    with _turn:  # counting takes two steps, and two threads may interleave
        start_times().note()
    time.sleep(ms / 1e3)


@app.task(retry=Constant(RETRY_AFTER))
async def fail_once(job: Job, n: int) -> None:
    """One in ten fails at its first attempt."""
    start_times().note()
    if n % FAILING_ONE_IN == 0 and job.attempt == 1:
        raise ConnectionResetError("the other side hung up")


@app.task
async def one_row(job: Job) -> None:
    """One row, and the job's success with it."""
    start_times().note()
    async with job.complete() as conn:
        await conn.execute(INSERT, [job.id])


@app.task
def one_row_thread(job: Job) -> None:
    """The same in a thread."""
    with _turn:
        start_times().note()
    with job.complete() as conn:
        conn.execute(INSERT, [job.id])


def _in_a_process(handler: Callable[..., Any]) -> Any:
    """Make it a task where this release runs handlers in processes; else it stays a function."""
    if "run" not in inspect.signature(spec_of).parameters:
        return handler
    options: dict[str, Any] = {"run": "process"}
    return app.task(**options)(handler)


@_in_a_process
def nap_process(ms: int) -> None:
    """The same in a process of its own."""
    start_times().note()
    time.sleep(ms / 1e3)
