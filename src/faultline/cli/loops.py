"""The event loop a worker runs on: uvloop where it is installed, asyncio's own otherwise."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, Final

COLLECT_AFTER: Final = 20_000
"""Objects made and kept before the collector looks for cycles: a worker holds a few thousand at any moment,
and almost none of them is in one. Python's own 700 would have it look 60 times a second in vain."""


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end; answers the exit code."""
    gc.freeze()  # what was imported stays
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A function of its own: work begun inside the `except` would have this error as the cause of its own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
