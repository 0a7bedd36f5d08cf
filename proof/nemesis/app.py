"""The work of the storm: handlers that commit, return, fail, snooze, take their time, and call outside.

Some have a limit: so many at once, one after the other, or so many a second. Some are enqueued by schedules.
"""

import asyncio
import hashlib
import os
import signal
import time
from datetime import timedelta
from typing import Final

from psycopg import IsolationLevel

from faultline import Constant, Faultline, Job, Limit, every
from faultline.outcome import Snooze
from proof.nemesis import mutants, sink
from proof.nemesis.plan import LEASE_SECONDS

app = Faultline()

EFFECT: Final = "insert into storm.effects (job_id, token, effect) values (%s, %s, %s)"

# Many attempts: the storm costs some, and no job should die of it. Short pauses: drains are bounded.
ATTEMPTS: Final = 500
SOON: Final = Constant(timedelta(milliseconds=200))

AMBUSH_SECONDS: Final = 0.75 * LEASE_SECONDS

COMMITTING: Final = ("move", "move_in_thread", "move_in_process", "move_late", "move_at_repeatable_read",
                     "stumble", "nap", "long_walk", "call_out", "ambush", "crowd", "in_line", "by_turns",
                     "metered", "tick")  # fmt: skip
"""Tasks whose success leaves one effect row."""


def dice(job: Job, sides: int, what: str = "") -> int:
    """A number for this attempt, the same in every process: by job and token, not by a clock."""
    drawn = hashlib.blake2b(f"{job.id}-{job.token}-{what}".encode(), digest_size=4).digest()
    return int.from_bytes(drawn, "big") % sides


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
async def move(job: Job, request: int) -> None:
    """The ordinary case: one row and the success, together."""
    await asyncio.sleep(dice(job, 150) / 1000)
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
def move_in_thread(job: Job, request: int) -> None:
    time.sleep(dice(job, 150) / 1000)
    with job.complete(result={"request": request}) as conn:
        conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(queue="children", run="process", max_attempts=ATTEMPTS, retry=SOON)
def move_in_process(job: Job, request: int) -> None:
    """In a child process, which sometimes ends in the middle of it."""
    time.sleep(dice(job, 200) / 1000)
    with job.complete(result={"request": request}) as conn:
        conn.execute(EFFECT, [job.id, job.token, "move"])
        if dice(job, 25, "dies") == 0:
            os.kill(os.getpid(), signal.SIGKILL)


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
async def move_late(job: Job, request: int) -> None:
    """Long between the row and the commit: what comes in between meets an open transaction."""
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])
        await conn.execute("select pg_sleep(%s)", [dice(job, 1000) / 1000])


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
def move_at_repeatable_read(job: Job, request: int) -> None:
    """The fence comes first here, and the row stays locked until the commit."""
    with job.complete(result={"request": request}, isolation=IsolationLevel.REPEATABLE_READ) as conn:
        conn.execute(EFFECT, [job.id, job.token, "move"])
        time.sleep(dice(job, 100) / 1000)


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
async def stumble(job: Job, request: int) -> None:
    """Fails with its row written and not committed, until it does not."""
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])
        if dice(job, 2):
            raise ValueError("stumbled")


@app.task(queue="moves", max_attempts=3, retry=SOON)
async def doomed(job: Job, request: int) -> None:
    """Never succeeds: dead in the end, without any effect."""
    async with job.complete() as conn:
        await conn.execute(EFFECT, [job.id, job.token, "doomed"])
        raise ValueError("doomed")


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
async def nap(job: Job, request: int) -> None:
    if dice(job, 3):
        raise Snooze(timedelta(milliseconds=100 + dice(job, 400)))
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(queue="plains", max_attempts=ATTEMPTS, retry=SOON)
async def plain(job: Job, request: int) -> dict[str, int]:
    """No transaction: its completion goes in a batch with others."""
    await asyncio.sleep(dice(job, 100) / 1000)
    return {"request": request, "token": job.token}


@app.task(queue="plains", max_attempts=ATTEMPTS, retry=SOON)
def plain_in_thread(job: Job, request: int) -> dict[str, int]:
    time.sleep(dice(job, 300) / 1000)
    return {"request": request, "token": job.token}


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
async def long_walk(job: Job, request: int) -> None:
    """Several steps, longer than a lease in all: it lives on heartbeats."""
    for _ in range(6):
        await asyncio.sleep(LEASE_SECONDS / 4)
        if job.lost:
            raise TimeoutError("no longer ours")
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(queue="ambushes", max_attempts=ATTEMPTS, retry=SOON)
def ambush(job: Job, request: int) -> None:
    """Slow for the worker that takes it over: the one it was taken from wakes in the middle of that."""
    if job.attempt > 1:
        time.sleep(AMBUSH_SECONDS)
    with job.complete(result={"request": request}) as conn:
        conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(queue="plain-ambushes", max_attempts=ATTEMPTS, retry=SOON)
async def plain_ambush(job: Job, request: int) -> dict[str, int]:
    """The same for a completion that goes in a batch."""
    if job.attempt > 1:
        await asyncio.sleep(AMBUSH_SECONDS)
    return {"request": request, "token": job.token}


@app.task(queue="plains", max_attempts=ATTEMPTS, retry=SOON)
def call_out(job: Job, request: int) -> None:
    """An effect elsewhere, with the constant key and the growing number; then one here."""
    sink.call(job.idempotency_key("charge"), job.id, request, job.token)
    time.sleep(dice(job, 200) / 1000)
    with job.complete(result={"request": request}) as conn:
        conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON, limit=Limit(per_key=2, total=4, key="account"))
async def crowd(job: Job, request: int, account: str) -> None:
    """Four at once, two of an account."""
    await asyncio.sleep(0.2 + dice(job, 300) / 1000)
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])


@app.task(
    queue="plains", max_attempts=ATTEMPTS, retry=SOON, limit=Limit(per_key=1, key="account", on_retry="block")
)
async def in_line(job: Job, request: int, account: str) -> None:
    """One after the other, retries included."""
    await _sometimes_fail(job, request)


@app.task(queue="plains", max_attempts=ATTEMPTS, retry=SOON, limit=Limit(per_key=1, key="account"))
async def by_turns(job: Job, request: int, account: str) -> None:
    """One at a time; while one waits for its retry, the next goes on."""
    await _sometimes_fail(job, request)


async def _sometimes_fail(job: Job, request: int) -> None:
    await asyncio.sleep(dice(job, 150) / 1000)
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])
        if dice(job, 4) == 0:
            raise ValueError("stumbled")


# The bucket is full again within the shortest time for which the storm moves the clock: the checker relies
# on it.
@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON, limit=Limit(rate="2/s", burst=2))
async def metered(job: Job, request: int) -> None:
    """Two a second, which is more than come on average, and less than come at times."""
    async with job.complete(result={"request": request}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])


SCHEDULES: Final = {"each-second": 1.0, "one-at-a-time": 1.0}
"""The schedules, and the seconds between two occurrences."""
SKIPPING: Final = frozenset({"one-at-a-time"})


# Made up for in full: the checker knows each time that has to be there.
@app.schedule(every(seconds=1), name="each-second", args={"schedule": "each-second"}, missed="all")
@app.schedule(
    every(seconds=1), name="one-at-a-time", args={"schedule": "one-at-a-time"}, missed="all", overlap="skip"
)
@app.task(queue="moves", max_attempts=ATTEMPTS, retry=SOON)
async def tick(job: Job, schedule: str) -> None:
    """Enqueued by schedules alone."""
    await asyncio.sleep(dice(job, 800) / 1000)
    async with job.complete(result={"schedule": schedule}) as conn:
        await conn.execute(EFFECT, [job.id, job.token, "move"])


LIMITS: Final = {spec.name: spec.limit for spec in app.registry if isinstance(spec.limit, Limit)}
"""Each limited task, and its limit."""

mutants.break_worker()
