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
from faultline.telemetry.events import tell
from faultline.telemetry.frames import frames_at
from faultline.telemetry.seldom import Seldom
from faultline.worker.hand import Hand
from faultline.worker.shelf import Shelf

LOOK_EVERY: Final = 0.25
BLOCKED_AFTER: Final = 1.0
"""Seconds without a tick, of which there are four or more a second, after which it is told."""

TOLD_EVERY: Final = 60.0

ADVICE: Final = 'waits or computes without await: use an async call, a plain (def) handler, or run="process"'

NO_JOB: Final = "(none)"


class Stalls:
    """Looks at one loop from a thread of its own; costs the loop nothing.

    Two looks have to find the same task on the loop, or it may be a machine without time for any of us. A
    call that keeps the interpreter's lock keeps us out, too: then the CPU used in that time is the sign, and
    the handler is named if it is still there when the lock is free.
    """

    def __init__(self, shelf: Shelf, worker: int) -> None:
        self.shelf = shelf
        self.worker = worker
        self._seldom = Seldom(TOLD_EVERY)
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
        ticked_at, now, cpu = self.shelf.board.ticked_at(), time.monotonic(), time.process_time()
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
        tell("loop_still", seconds=now - max(self._counted_to, ticked_at), task=name)
        self._counted_to = now
        if self._seldom.allows("loop"):
            facts = (
                {"coroutine": getattr(task.get_coro(), "__qualname__", "")} if job is None else _facts(job)
            )
            emit(
                "loop_blocked", logging.WARNING, worker=self.worker, seconds=round(now - ticked_at, 1),
                **facts, advice=ADVICE, frames="\n".join(frames_at(frame)),
            )  # fmt: skip

    def _job_of(self, task: "asyncio.Task[Any]") -> Job | None:
        for hand in list(self.shelf.running):
            if hand.runner is task:
                return hand.job
        if sys.version_info >= (3, 12):  # a task that a handler has started
            return task.get_context().get(current)
        return None

    def _stop_threads(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        """Handlers in threads look at `job.lost`; while the loop is blocked the overseer cannot tell them.

        The loop is told first: a handler that then returns early has not succeeded.
        """
        for hand in list(self.shelf.running):
            plain = hand.spec is not None and not hand.spec.is_async and hand.spec.run != "process"
            if plain and hand.stopping is None and not hand.job.lost and (why := self._must_stop(hand, now)):
                loop.call_soon_threadsafe(hand.stop, why)
                hand.job._lose()

    def _must_stop(self, hand: Hand, now: float) -> str | None:
        """As the overseer judges."""
        answer = hand.heard(self.shelf.board)
        if answer is not None and answer.word in ("lost", "cancel"):
            return answer.word
        if now >= hand.timeout_at:
            return "timeout"
        return "not_renewed" if now >= hand.safe_at - hand.lease_for * 0.1 else None


def _facts(job: Job) -> dict[str, Any]:
    return {"job_id": job.id, "token": job.token, "task": job.task, "attempt": job.attempt}
