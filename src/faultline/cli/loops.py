"""The event loop a worker runs on: uvloop where it is installed, asyncio's own otherwise."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end; answers the exit code."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
