"""A worker's process: run with one argument of JSON, it says `ready` and works until it is told to stop."""

import asyncio
import json
import re
import sys
import time
from datetime import timedelta
from typing import Any

import psycopg

from faultline.config import Settings, WorkerConfig
from faultline.job import Job
from faultline.runtime.run_worker import work
from faultline.task import Registry, spec_of
from faultline.telemetry import configure_logging

asked: dict[str, Any] = json.loads(sys.argv[1]) if __name__ == "__main__" else {}


def note(job: Job, said: str) -> None:
    with psycopg.connect(asked["dsn"], autocommit=True) as conn:
        conn.execute("insert into notes (job_id, token, said) values (%s, %s, %s)", [job.id, job.token, said])


async def nap(job: Job, seconds: float) -> str:
    note(job, "began")
    await asyncio.sleep(seconds)
    return "slept"


async def doze(seconds: float) -> None:
    """Unlike `nap` it touches no database, so an outage is nothing to it."""
    await asyncio.sleep(seconds)


def nap_in_thread(job: Job, seconds: float) -> str:
    note(job, "began")
    time.sleep(seconds)
    return "slept"


async def hold_the_lock(job: Job, seconds: float) -> str:
    """One call that neither returns nor lets any other thread of this process run."""
    note(job, "began")
    began = time.perf_counter()
    sum(range(1_000_000))
    a_million = time.perf_counter() - began
    sum(range(int(1_000_000 * seconds / a_million)))
    return "held"


async def backtrack(job: Job, letters: int) -> str:
    note(job, "began")
    re.match(r"(a|a)*$", "a" * letters + "b")
    return "gave up"


async def spend(job: Job, said: str) -> None:
    note(job, "began")
    async with job.complete(result=said) as conn:
        await conn.execute(
            "insert into effects (job_id, token, said) values (%s, %s, %s)", [job.id, job.token, said]
        )


async def quick(job: Job) -> None:
    """Nothing to do."""


def main() -> int:
    configure_logging(json=True, level=asked.get("log", "INFO"))
    tasks = Registry()
    for handler in (nap, doze, nap_in_thread, hold_the_lock, backtrack, spend, quick):
        tasks.add(spec_of(handler))
    seconds = {name: timedelta(seconds=value) for name, value in asked.get("seconds", {}).items()}
    config = WorkerConfig(**{"jobs_max": 4, **asked.get("config", {}), **seconds})
    settings = Settings(dsn=asked["dsn"], pooler=asked.get("pooler", "none"))

    def ready(_: Any) -> None:
        print("ready", flush=True)

    return asyncio.run(
        work(
            tasks, settings, config, name=asked.get("name"), signals=True, on_ready=ready,
            watchdog=asked.get("watchdog", True),
        )
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
