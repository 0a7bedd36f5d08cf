"""An app for groups of workers: its handlers note down which process began them."""

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from faultline import Faultline, Job, WorkerConfig

app = Faultline()

if Path(os.environ.get("GROUP_DIES_IF", "/nonexistent")).exists():
    os._exit(7)
if "GROUP_POLL" in os.environ:  # no option of the command line: only a test has a use for it
    defaults: Any = WorkerConfig.__init__.__kwdefaults__
    defaults["poll_every"] = timedelta(seconds=float(os.environ["GROUP_POLL"]))
if "GROUP_RAISES" in os.environ:
    raise RuntimeError("asked for")


def note(job: Job) -> None:
    with psycopg.connect(app.settings.require_dsn(), autocommit=True) as conn:
        conn.execute(
            "insert into notes (job_id, token, pid) values (%s, %s, %s)", [job.id, job.token, os.getpid()]
        )


@app.task
async def nap(job: Job, seconds: float) -> int:
    note(job)
    await asyncio.sleep(seconds)
    return os.getpid()


@app.task
async def hold_the_loop(job: Job, seconds: float) -> None:
    note(job)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
