"""An app of every kind of handler, some of which kill the process they run in; a child has to import it."""

import asyncio
import ctypes
import os
import resource
import signal
import threading
from datetime import timedelta
from pathlib import Path

import psycopg

from faultline import Faultline
from faultline.job import Job
from faultline.retry import Constant

app = Faultline()
AT_ONCE = Constant(timedelta(0))
INSERT = "insert into effects (job_id, token, said) values (%s, %s, %s)"
POISONS = ("exit", "segfault", "abort", "kill", "memory")


def note(job: Job, said: object) -> None:
    with psycopg.connect(os.environ["FAULTLINE_DSN"], autocommit=True) as conn:
        conn.execute(
            "insert into notes (job_id, token, said) values (%s, %s, %s)", [job.id, job.token, str(said)]
        )


def die(how: str) -> None:
    match how:
        case "exit":
            os._exit(7)
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "memory":
            _eat()
        case "greed":  # more than any machine has: refused at once, and no other process is short of it
            bytearray(2**62)


def _eat() -> None:
    """As under `ulimit -v`: what is there already may stay, and little more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 64 * 2**20, hard))
    try:
        hoard = []
        while True:
            hoard.append(bytearray(2**24))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@app.task(retry=AT_ONCE)
async def poison(job: Job, how: str) -> None:
    note(job, os.getpid())
    die(how)


@app.task(retry=AT_ONCE)
def poison_in_thread(job: Job, how: str) -> None:
    note(job, os.getpid())
    die(how)


@app.task(retry=AT_ONCE, run="process")
def poison_in_process(job: Job, how: str) -> None:
    note(job, os.getpid())
    die(how)


@app.task(retry=AT_ONCE, max_crashes=1)
async def poison_once(job: Job, how: str) -> None:
    note(job, os.getpid())
    die(how)


@app.task(retry=AT_ONCE, max_crashes=None)
async def never_alone(job: Job) -> None:
    note(job, os.getpid())


@app.task
async def innocent(job: Job) -> None:
    note(job, os.getpid())
    await asyncio.sleep(0.05)
    async with job.complete(result="done") as conn:
        await conn.execute(INSERT, [job.id, job.token, "innocent"])


@app.task
def innocent_in_thread(job: Job) -> None:
    note(job, os.getpid())
    with job.complete(result="done") as conn:
        conn.execute(INSERT, [job.id, job.token, "innocent"])


@app.task(run="process")
def innocent_in_process(job: Job) -> None:
    note(job, os.getpid())
    with job.complete(result="done") as conn:
        conn.execute(INSERT, [job.id, job.token, "innocent"])


@app.task
def leave_a_mine(job: Job) -> None:
    """Succeeds, and leaves a thread behind that ends the process in a moment."""
    threading.Timer(0.05, os._exit, [9]).start()


@app.task
async def slow(job: Job) -> None:
    note(job, "began")
    await asyncio.sleep(60)
