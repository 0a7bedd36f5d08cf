"""The worker of one of several apps that share a queue: run with the DSN and the name of its task."""

import asyncio
import sys

from faultline.config import Settings, WorkerConfig
from faultline.runtime.run_worker import work
from faultline.task import Registry, spec_of


async def run(dsn: str, task: str) -> None:
    """Say `ready` when it works; it ends with SIGTERM."""

    async def nothing() -> None: ...

    tasks = Registry()
    tasks.add(spec_of(nothing, name=task))
    await work(
        tasks, Settings(dsn=dsn), WorkerConfig(jobs_max=4), name=f"app of {task}", signals=True,
        on_ready=lambda worker: print("ready", flush=True),
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
