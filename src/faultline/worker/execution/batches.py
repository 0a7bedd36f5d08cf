"""Batches in a worker: jobs of one task that wait for each other, and one call for all of them.

Each job stays an attempt of its own, with its lease, its token and its timeout, in a small task that waits
for its share of the call. The call takes one slot of the worker, however many jobs are in it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from faultline.batch import BatchItem, Share, end_rest, fail_rest
from faultline.task import TaskSpec
from faultline.worker.attempt import Attempt
from faultline.worker.execution.threads import Threads
from faultline.worker.state import WorkerState

LOOK_EVERY: Final = 0.005
"""Seconds between two looks for more jobs, while a batch gathers."""

Settle = Callable[[Attempt], bool]
"""Whether an attempt may begin; one that may not is settled by it."""


class AttemptBatch:
    """Jobs of one task that are on their way into one call."""

    def __init__(self, spec: TaskSpec, size: int) -> None:
        self.spec = spec
        self.size = size
        self.items: list[BatchItem[Any]] = []
        self.attempts: list[Attempt] = []
        self.coming = 0
        """Jobs whose tasks have not joined yet."""
        self.alive = 0
        """Jobs that wait for their share."""
        self.is_open = True
        self.call: asyncio.Task[Any] | None = None

    @property
    def missing(self) -> int:
        return self.size - len(self.items) - self.coming

    async def share(self, attempt: Attempt, args: Any) -> Share:
        """Join, and wait for what the call says of this job."""
        future: asyncio.Future[Share] = asyncio.get_running_loop().create_future()
        self.items.append(BatchItem(attempt.job, args, future))
        self.attempts.append(attempt)
        attempt.is_excused = True  # it waits for others
        self.alive += 1
        try:
            share = await future
        except asyncio.CancelledError:
            self.alive -= 1
            if not self.alive and self.call is not None:
                self.call.cancel()  # nothing that it does can be recorded any more
            raise
        self.alive -= 1
        return share


class Batches:
    """The batches of one worker."""

    def __init__(self, state: WorkerState, threads: Threads) -> None:
        self._state = state
        self._threads = threads
        self._open: dict[str, AttemptBatch] = {}
        self._of: dict[Attempt, AttemptBatch] = {}

    async def take(self, attempt: Attempt, start: Callable[[Attempt], None], may_begin: Settle) -> None:
        """Put a job into a batch of its task; the runner that opens one sees it through."""
        spec = attempt.spec
        assert spec is not None and spec.batch is not None
        batch = self._open.get(spec.name)
        if batch is not None and batch.missing > 0 and not attempt.job.crashes:
            self._add(batch, attempt, start)
            return
        # A job that crashed once may take its neighbours with it: it goes by itself.
        batch = AttemptBatch(spec, 1 if attempt.job.crashes else spec.batch)
        if batch.size > 1:
            self._open[spec.name] = batch
        self._state.batches += 1
        try:
            self._add(batch, attempt, start)
            await self._gather(batch, start, may_begin)
            await self._run(batch)
        finally:
            self._close(batch)
            self._state.batches -= 1
            self._state.ask_for_more()

    async def share(self, attempt: Attempt, args: Any) -> Share:
        """What the call says of this job."""
        batch = self._of[attempt]
        batch.coming -= 1
        del self._of[attempt]
        return await batch.share(attempt, args)

    def left(self, attempt: Attempt) -> None:
        """The job ended before it joined: its arguments were bad, or it was stopped."""
        if batch := self._of.pop(attempt, None):
            batch.coming -= 1

    def _add(self, batch: AttemptBatch, attempt: Attempt, start: Callable[[Attempt], None]) -> None:
        batch.coming += 1
        self._of[attempt] = batch
        start(attempt)

    async def _gather(self, batch: AttemptBatch, start: Callable[[Attempt], None], may_begin: Settle) -> None:
        """Until it is full, or its time is over; jobs of other tasks stay in the buffer."""
        until = time.monotonic() + batch.spec.batch_wait.total_seconds()
        while batch.missing > 0:
            for attempt in self._pulled(batch):
                if may_begin(attempt):
                    self._add(batch, attempt, start)
            left = until - time.monotonic()
            if batch.missing <= 0 or left <= 0:
                break
            self._state.gathering += (asked := batch.missing)
            self._state.hungry.set()
            try:
                await asyncio.sleep(min(left, LOOK_EVERY))
            finally:
                self._state.gathering -= asked
        self._close(batch)
        while batch.coming:  # noqa: ASYNC110 - their tasks begin in the next turn of the loop
            await asyncio.sleep(0)

    def _pulled(self, batch: AttemptBatch) -> list[Attempt]:
        """Jobs of this task that wait in the buffer, as many as are missing."""
        found: list[Attempt] = []
        rest: deque[Attempt] = deque()
        for attempt in self._state.buffer:
            fits = attempt.spec is batch.spec and not attempt.job.crashes and len(found) < batch.missing
            (found if fits else rest).append(attempt)
        if found:
            self._state.buffer.clear()
            self._state.buffer.extend(rest)
        return found

    def _close(self, batch: AttemptBatch) -> None:
        if self._open.get(batch.spec.name) is batch:
            del self._open[batch.spec.name]

    async def _run(self, batch: AttemptBatch) -> None:
        items = [item for item, attempt in zip(batch.items, batch.attempts, strict=True) if attempt.runner]
        for attempt in batch.attempts:
            attempt.is_excused = False
        if not items or not batch.alive:
            return
        batch.call = asyncio.create_task(self._call(batch.spec, items))
        try:
            value, error = await asyncio.shield(batch.call)
        except asyncio.CancelledError:
            if batch.call.done():
                return  # no job of it was left
            batch.call.cancel()
            raise  # the worker itself ends
        if error is None:
            end_rest(items, value)
        else:
            fail_rest(items, error)

    async def _call(self, spec: TaskSpec, items: list[BatchItem[Any]]) -> tuple[Any, BaseException | None]:
        """What the handler returned or raised, as values: a task that ends by SystemExit ends the worker."""
        if not spec.is_async:
            return await asyncio.wrap_future(self._threads.submit(lambda: _caught(spec, items)))
        try:
            return await spec.handler(items), None
        except asyncio.CancelledError as error:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            return None, error  # the handler's own, from a task it cancelled
        except BaseException as error:
            return None, error


def _caught(spec: TaskSpec, items: list[BatchItem[Any]]) -> tuple[Any, BaseException | None]:
    try:
        return spec.handler(items), None
    except BaseException as error:
        return None, error
