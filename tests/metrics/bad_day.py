"""An app that has a bad day: jobs that fail, die, crash, and one whose worker comes too late."""

import os
import signal
from datetime import timedelta
from uuid import uuid4

import psycopg

from faultline import Faultline, Job
from faultline.retry import Constant

app = Faultline()

AT_ONCE = Constant(timedelta(0))
OTHERS_LEASE = "15 seconds"


@app.task
async def fine(job: Job) -> None:
    """Nothing to do."""


@app.task(max_attempts=3, retry=AT_ONCE)
async def flaky(job: Job) -> None:
    if job.attempt == 1:
        raise ValueError("password=hunter2 is in this text")


@app.task(max_attempts=1)
def doomed() -> None:
    raise RuntimeError("it never works")


@app.task(run="process", max_attempts=2, retry=AT_ONCE)
def dies(job: Job) -> None:
    if job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
def too_late(job: Job, dsn: str) -> None:
    """While it works, its lease runs out and another worker does its job: what it then says is refused."""
    claim = uuid4()
    # All of it in one transaction, or a real watchdog may be the one that reaps.
    with psycopg.connect(dsn) as conn:
        conn.execute(
            "update faultline.active set lease_until = faultline.now() - interval '1 second' where id = %s",
            [job.id],
        )
        conn.execute("update faultline.rounds set hold_until = '-infinity', gap_at = '{}'")
        conn.execute("select from faultline.reap()")
        conn.execute("select from faultline.retry_now(%s)", [job.id])
        row = conn.execute(
            "select id, token from faultline.claim(array[%s], 1, %s, %s)",
            [job.queue, OTHERS_LEASE, claim],
        ).fetchone()
        assert row is not None
        conn.execute("select faultline.complete(%s, %s, %s)", [*row, claim])
