"""The supervisor: starts worker processes, listens for all of them, and starts again what dies.

It runs no user code. So the group's one watchdog runs here: no handler can block it, and no worker's
crash ends it.
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from faultline.errors import FaultlineError
from faultline.runtime.notify import Notifier
from faultline.store.driver.listen import listen
from faultline.supervisor.backoff import Backoff
from faultline.supervisor.messages import ProcessFailure, ProcessOrder, ProcessReady, wake
from faultline.supervisor.restart_policy import (
    GiveUp,
    GroupFinished,
    GroupState,
    ProcessEnd,
    RestartProcess,
    next_step,
)
from faultline.supervisor.worker_process import WorkerProcess
from faultline.telemetry import emit
from faultline.watchdog.watchdog import Watchdog

log = logging.getLogger("faultline.supervisor")

RESTART_FIRST: Final = 0.2
RESTART_LONGEST: Final = 30.0
STEADY_SECONDS: Final = 10.0
"""A process that worked this long did not fail at its start: the next one starts at once."""

LISTEN_FIRST: Final = 0.1
LISTEN_LONGEST: Final = 5.0

LEAVE_SECONDS_MAX: Final = 20.0
"""After its grace a worker settles and ends well within this time. A slower one is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """The command to run, and the number of processes."""

    processes: int
    name: str
    command: Callable[[str], Sequence[str]]
    """The command line of the worker of this name; the number of a descriptor is appended."""
    dsn: str | None
    grace: timedelta
    until_empty: bool = False


class Supervisor:
    """Keeps this many worker processes running until it is told to stop, or their queues are empty."""

    def __init__(self, plan: GroupPlan) -> None:
        self.plan = plan
        self.children: dict[int, WorkerProcess] = {}
        self._stopping = asyncio.Event()
        self._claimed = asyncio.Event()
        self._asked = False
        self._ready: asyncio.Future[ProcessReady] = asyncio.get_running_loop().create_future()
        self._starts_failed = 0
        self._hears = False
        self._codes = [0]
        self._trouble: FaultlineError | None = None

    async def run(self) -> int:
        """Run until all have ended; answers the worst exit code of those that ended last."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._look)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        telling = Notifier.take().follow(self._claimed, self._stopping, self.status)
        beside = [asyncio.create_task(part) for part in (self._look_after_all(), telling)]
        try:
            await asyncio.gather(*(self._keep(number + 1) for number in range(self.plan.processes)))
        finally:
            for part in beside:
                part.cancel()
            for part in beside:
                with contextlib.suppress(asyncio.CancelledError):
                    await part
        if self._trouble is not None:
            raise self._trouble
        return max(self._codes)

    def status(self) -> str:
        """One line about the state of the group."""
        return f"{len(self.children)} of {self.plan.processes} worker processes"

    def stop(self) -> None:
        """Let all finish their jobs; a second call has them give the jobs back at once."""
        if self._asked:
            for child in self.children.values():
                child.hurry()
            self._kill_after(LEAVE_SECONDS_MAX)
        self._asked = True
        self._finish()

    def _finish(self) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            for child in self.children.values():
                child.stop()
            self._kill_after(self.plan.grace.total_seconds() + LEAVE_SECONDS_MAX)

    def _kill_after(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._kill)

    def _kill(self) -> None:
        for child in self.children.values():
            log.error("%s does not end; it is killed, its leases run out", self._name(child.order.number))
            child.kill()

    async def _keep(self, number: int) -> None:
        """Keep one place filled: start a worker, wait for its end, decide, and start the next."""
        pauses = Backoff(RESTART_FIRST, RESTART_LONGEST)
        while not self._stopping.is_set():
            began = time.monotonic()
            end = await self._one(number)
            self._starts_failed += not end.was_ready
            if time.monotonic() - began > STEADY_SECONDS:
                pauses.reset()
            match next_step(end, self._group()):
                case GroupFinished(code):
                    self._codes.append(code)
                    return
                case GiveUp(error):
                    self._give_up(error)
                    return
                case RestartProcess():
                    await self._pause(number, end, pauses())

    async def _one(self, number: int) -> ProcessEnd:
        """Run one worker process to its end."""
        order = ProcessOrder(number, self.plan.dsn)
        try:
            child = WorkerProcess.start(self.plan.command(self._name(number)), order)
        except OSError as refused:  # no process, no memory
            return ProcessEnd(1, False, ProcessFailure("", f"no worker process can be started: {refused}"))
        self.children[number] = child  # before any await: the child may end at once
        try:
            return await child.follow(partial(self._is_ready, child), self._claimed.set)
        finally:
            del self.children[number]

    def _group(self) -> GroupState:
        return GroupState(
            self._stopping.is_set(), self.plan.until_empty, self._ready.done(), self._starts_failed
        )

    async def _pause(self, number: int, end: ProcessEnd, seconds: float) -> None:
        said = {} if end.failure is None else {"error": end.failure.says}
        facts = end.facts() | said | {"next_in": round(seconds, 1)}
        emit("process_ended", logging.WARNING, name=self._name(number), **facts)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _give_up(self, error: FaultlineError) -> None:
        if self._trouble is None:
            self._trouble = error
            self._finish()

    def _is_ready(self, child: WorkerProcess, ready: ProcessReady) -> None:
        self._starts_failed = 0
        if self._hears:
            child.tell(wake(""))
        if not self._ready.done():
            self._ready.set_result(ready)

    def _look(self) -> None:
        for child in self.children.values():
            child.look()

    def _name(self, number: int) -> str:
        return f"{self.plan.name}/{number}"

    async def _look_after_all(self) -> None:
        """Listen and watch for the group, once the first process has told the database's address."""
        ready = await self._ready
        if ready.dsn is None:
            return
        while True:
            watchdog = Watchdog(ready.dsn, ready.worker, timedelta(seconds=ready.tick), prepare=ready.listens)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(watchdog.run())
                    both.create_task(self._listen(ready, ready.dsn))
            except Exception:
                log.exception("the group's listener or watchdog failed; both are started again")
                await asyncio.sleep(ready.tick)

    async def _listen(self, ready: ProcessReady, dsn: str) -> None:
        """Pass each wake-up on; behind a pooler LISTEN does not work, and the workers poll."""
        pauses = Backoff(LISTEN_FIRST, LISTEN_LONGEST)

        def heard(queue: str | None) -> None:
            self._hears = queue is not None
            if self._hears:
                pauses.reset()
            line = wake(queue)
            for child in self.children.values():
                child.tell(line)

        if ready.listens:
            await listen(dsn, heard, pauses)
