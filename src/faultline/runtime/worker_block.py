"""`async with app.worker():` a worker in the running event loop, for as long as a block lasts."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any

from faultline.errors import WorkerEnded

log = logging.getLogger("faultline.worker")

Run = Callable[[Callable[[Any], None]], Coroutine[Any, Any, int]]
"""Runs a worker to its end, and calls what it is given once the worker is ready."""


class WorkerBlock:
    """Starts a worker, and stops it in good order at the end of the block.

    A worker that cannot start raises at once. One that ends by an error later cancels the block, and its
    error is raised in place of the cancellation, as a TaskGroup does.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._block: asyncio.Task[Any] | None = None
        self._working: asyncio.Task[int] | None = None
        self._error: BaseException | None = None
        self._left = False

    async def __aenter__(self) -> None:
        self._block = asyncio.current_task()
        ready = asyncio.Event()
        self._working = asyncio.create_task(self._run(lambda worker: ready.set()), name="faultline worker")
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait([self._working, waiting], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._stop()
            raise
        finally:
            waiting.cancel()
        if self._working.done():  # it could not start; or, with until_empty, found nothing to do
            self._working.result()
        self._working.add_done_callback(self._ended)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._working is not None
        self._left = True
        if self._error is None:
            await self._stop()
            return
        assert self._block is not None
        if kind is None:  # the cancellation may still be on its way
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        others = self._block.uncancel()
        if others == 0 and (kind is None or kind is asyncio.CancelledError):
            raise self._error from None

    async def _stop(self) -> None:
        """Stop it as SIGTERM does; a cancellation meanwhile is its second, and is raised after its end."""
        assert self._working is not None
        was_cancelled = False
        self._working.cancel()
        while not self._working.done():
            try:
                await asyncio.wait([self._working])
            except asyncio.CancelledError:
                was_cancelled = True
                self._working.cancel()
        if not self._working.cancelled() and (failed := self._working.exception()) is not None:
            raise failed
        if was_cancelled:
            raise asyncio.CancelledError

    def _ended(self, working: asyncio.Task[int]) -> None:
        """The worker ended before the block: for an error, or because it was told to by its options."""
        if self._left:
            return
        if working.cancelled():
            self._error = WorkerEnded("the worker of this block was cancelled from outside")
        elif (failed := working.exception()) is not None:
            self._error = failed
        elif code := working.result():
            self._error = WorkerEnded(
                f"the worker of this block ended with exit code {code}; its log says why, and its jobs go "
                "to other workers"
            )
        if self._error is not None:
            log.error("the worker of app.worker() has ended, and its block is left: %s", self._error)
            assert self._block is not None
            self._block.cancel()
