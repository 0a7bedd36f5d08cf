"""The event loop of a process that only works or serves: uvloop where it is installed, else asyncio's own."""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

COLLECT_AFTER: Final = 20_000
"""Objects made and kept before the collector searches for cycles: a worker holds a few thousand at any time,
and almost none of them is in one. Python's own 700 would start 60 useless searches a second."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; answers what it returned."""
    with _few_collections(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.freeze()  # imported objects stay
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A function of its own: errors of work begun inside the `except` would have this one as their cause."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
