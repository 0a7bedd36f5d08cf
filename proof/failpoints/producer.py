"""A producer: `python -m proof.failpoints.producer` enqueues every job, and says which were acknowledged."""

import asyncio

from faultline import failpoints
from proof.failpoints.app import app, keyed


def main() -> None:
    """Half of them from plain code, half from async code; a line is written when the enqueue has answered."""
    failpoints.arm_from_environment()
    tasks = list(keyed())
    half = len(tasks) // 2
    for task in tasks[:half]:
        print(task.enqueue().id, flush=True)
    app.close()
    asyncio.run(_the_rest(tasks[half:]))


async def _the_rest(tasks: list) -> None:  # type: ignore[type-arg]
    for task in tasks:
        print((await task.aenqueue()).id, flush=True)
    await app.aclose()


if __name__ == "__main__":
    main()
