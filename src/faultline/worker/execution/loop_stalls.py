"""Names the handler that blocks the event loop: a thread that looks at the loop's ticks, and at its stack."""

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from faultline.job import Job
from faultline.telemetry import current, emit
from faultline.telemetry.events import record_metric
from faultline.telemetry.frames import frames_at
from faultline.telemetry.rate_limited import RateLimited
from faultline.worker.state import LoopBlocked, WorkerState

LOOK_EVERY: Final = 0.25
BLOCKED_AFTER: Final = 1.0
"""Seconds without a tick, of which there are four or more a second, after which it is told."""

TOLD_EVERY: Final = 60.0

ADVICE: Final = 'waits or computes without await: use an async call, a plain (def) handler, or run="process"'

NO_JOB: Final = "(none)"


class LoopStalls:
    """Looks at one loop from a thread of its own; costs the loop nothing.

    Two looks have to find the same task on the loop, or it may be a machine without time for any of us. A
    call that keeps the interpreter's lock keeps us out, too: then the CPU used in that time is the sign, and
    the handler is named if it is still there when the lock is free.
    """

    def __init__(self, state: WorkerState, worker: int) -> None:
        self.state = state
        self.worker = worker
        self._seldom = RateLimited(TOLD_EVERY)
        self._counted_to = 0.0
        self._looked_at = time.monotonic()
        self._cpu = time.process_time()
        self._suspect: asyncio.Task[Any] | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running loop, whose thread this is, while the block runs."""
        loop, thread, over = asyncio.get_running_loop(), threading.get_ident(), threading.Event()

        def watch() -> None:
            while not over.wait(LOOK_EVERY):
                self.look(loop, thread)

        watcher = threading.Thread(target=watch, name="faultline-stalls", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join(LOOK_EVERY)

    def look(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        """Has the loop turned since the last look; if not for long, what is on it?"""
        ticked_at, now, cpu = self.state.lease_table.ticked_at(), time.monotonic(), time.process_time()
        late, burnt = now - self._looked_at, cpu - self._cpu
        self._looked_at, self._cpu = now, cpu
        task, frame = asyncio.current_task(loop), sys._current_frames().get(thread)
        before, self._suspect = self._suspect, task
        if not ticked_at or now - ticked_at < BLOCKED_AFTER:
            return
        self._stop_threads(loop, now)
        computes = late >= BLOCKED_AFTER / 2 and burnt >= late / 4
        if task is None or frame is None or not (task is before or computes):
            return
        job = self._job_of(task)
        name = NO_JOB if job is None else job.task
        record_metric("loop_still", seconds=now - max(self._counted_to, ticked_at), task=name)
        self._counted_to = now
        if job is not None:
            self.state.blocked = LoopBlocked(ticked_at, job)
        if self._seldom.allows("loop"):
            facts = (
                {"coroutine": getattr(task.get_coro(), "__qualname__", "")} if job is None else _facts(job)
            )
            emit(
                "loop_blocked", logging.WARNING, worker=self.worker, seconds=round(now - ticked_at, 1),
                **facts, advice=ADVICE, frames="\n".join(frames_at(frame)),
            )  # fmt: skip

    def _job_of(self, task: "asyncio.Task[Any]") -> Job | None:
        for attempt in list(self.state.running):
            if attempt.runner is task:
                return attempt.job
        if sys.version_info >= (3, 12):  # a task that a handler has started
            return task.get_context().get(current)
        return None

    def _stop_threads(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Handlers in threads look at `job.lost`; a blocked loop stops the deadline monitor, too.

        The loop is told first: a handler that then returns early has not succeeded.
        """
        for attempt in list(self.state.running):
            plain = attempt.spec is not None and not attempt.spec.is_async and attempt.spec.run != "process"
            if (
                plain
                and attempt.stopping is None
                and not attempt.job.lost
                and (why := attempt.reason_to_stop(self.state.lease_table, now))
            ):
                loop.call_soon_threadsafe(attempt.stop, why)
                attempt.job._lose()


def _facts(job: Job) -> dict[str, Any]:
    return {"job_id": job.id, "token": job.token, "task": job.task, "attempt": job.attempt}
