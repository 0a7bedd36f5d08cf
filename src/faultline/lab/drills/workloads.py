"""The work that drills play with: a small app whose handlers write effect rows through `job.complete`."""

import asyncio
import ctypes
import os
import resource
from datetime import timedelta
from typing import Final

from faultline import Constant, Faultline, Job, LeaseLost
from faultline.lab.drills.stage.barriers import pass_through
from faultline.lab.drills.stage.stdin_barriers import StdinBarriers
from faultline.telemetry import emit

EFFECT: Final = "insert into effects (job_id, token, worker, wrote) values (%s, %s, %s, %s)"

# Sent inside the transaction, so it arrives only if the transaction commits.
SAY_COMMITTED: Final = "select pg_notify(current_schema(), %s)"

FLAKY_EVERY: Final = 25

app = Faultline()
me = os.environ.get("FAULTLINE_DRILL_WORKER", "none")
"""The name of the worker this process is, or is a child of; `worker_main` sets it."""
gates = StdinBarriers()
"""The barriers of a worker that knows no database; `worker_main` sets them."""


# A plain handler, not an async one: a thread cannot be cancelled, so what it was about to send is sent.
@app.task(max_attempts=5)
def transfer(job: Job, amount: int) -> None:
    """Move money: two rows that belong together, then the barrier of this attempt, then the commit."""
    try:
        with job.complete(result={"moved": amount}) as conn:
            conn.execute(EFFECT, [job.id, job.token, me, f"debit {amount}"])
            emit("half_written", job_id=job.id, token=job.token, worker=me, attempt=job.attempt)
            pass_through(conn, f"half of job {job.id}")
            conn.execute(EFFECT, [job.id, job.token, me, f"credit {amount}"])
            emit("at_barrier", job_id=job.id, token=job.token, worker=me, attempt=job.attempt)
            pass_through(conn, f"attempt {job.attempt}")
            conn.execute(SAY_COMMITTED, [f"{me}/{job.token}"])
    except LeaseLost as lost:
        emit("commit_refused", job_id=job.id, token=job.token, worker=me, reason=lost.reason)
        raise
    finally:
        emit("transaction_left", job_id=job.id, token=job.token, worker=me)


# Never alone in a child: the drill speaks to the worker's own process, and could not let a child go on.
@app.task(max_attempts=5, max_crashes=None)
def remit(job: Job, amount: int) -> dict[str, list[list[str | int]]]:
    """The same where there is no job.complete: the two rows are the result, recorded with the success."""
    emit("at_barrier", job_id=job.id, token=job.token, worker=me, attempt=job.attempt)
    gates.pass_through(f"attempt {job.attempt}")
    return {"rows": [[job.token, me, f"debit {amount}"], [job.token, me, f"credit {amount}"]]}


@app.task(max_attempts=10, retry=Constant(timedelta(0)))
def detonate(job: Job) -> None:
    """Poison: a segmentation fault kills the process that runs it, as a bad extension would do."""
    with job.complete() as conn:
        conn.execute(EFFECT, [job.id, job.token, me, "never to be seen"])
        emit("at_barrier", job_id=job.id, token=job.token, worker=me, attempt=job.attempt)
        pass_through(conn, "detonation")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.string_at(0)


@app.task(max_attempts=5, retry=Constant(timedelta(milliseconds=200)))
async def send_receipt(job: Job, order: int) -> None:
    """An ordinary job that takes a moment; some of them meet a bad line at their first attempt."""
    await asyncio.sleep(0.03)
    if job.attempt == 1 and order % FLAKY_EVERY == 0:
        raise ConnectionError("the mail server hung up")
    async with job.complete(result={"order": order}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, me, "receipt"])
        await conn.execute(SAY_COMMITTED, [f"{me}/{job.token}"])
