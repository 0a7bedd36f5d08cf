"""The children of a worker: a few processes that run handlers, started when needed and kept warm."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from faultline.config import Settings, WorkerConfig
from faultline.errors import HandlerDied, LeaseLost
from faultline.outcome import Outcome
from faultline.telemetry import logging_as_configured
from faultline.worker.attempt import BLOCK_OPEN, COMMITTED, WORKING, Attempt, AttemptPhase, StopReason
from faultline.worker.execution.outcomes import after_stop, given_back, put_off
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.processes.child_handle import CannotRunHere, ChildHandle, ChildNotStarted
from faultline.worker.processes.child_process import ChildProcess
from faultline.worker.processes.child_protocol import ChildGreeting
from faultline.worker.processes.import_path import ImportPath

log = logging.getLogger("faultline.worker")

IDLE_FOR = 60.0
"""Seconds after which a child that has nothing to do is let go."""

WAIT_SHARE = 0.25
"""Which part of its time a job may wait for a child; then it goes back, with its attempt, for any worker."""

NO_CHILD_PAUSE = timedelta(seconds=1)
NO_CHILD_PAUSE_MAX = timedelta(minutes=1)
"""How long a job waits for which the system had no process: doubled while it stays so."""

UNABLE_PAUSE = timedelta(seconds=15)

AskRows = Callable[[Attempt, Exception], Awaitable[None]]
"""Finds out what became of a commit in which its process died."""


class ChildPool:
    """Up to `most` processes, each of which runs one job at a time."""

    def __init__(
        self,
        config: WorkerConfig,
        settings: Settings,
        places: dict[str, ImportPath],
        lease_table: LeaseTable,
        ask_rows: AskRows,
        most: int,
    ) -> None:
        self._config = config
        self._settings = settings
        self._places = places
        self._lease_table = lease_table
        self._ask_rows = ask_rows
        self._most = most
        self._room = asyncio.Semaphore(most)
        self._refused_times = 0
        self._idle: dict[ChildHandle, asyncio.TimerHandle] = {}
        self._all: set[ChildHandle] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def run(self, attempt: Attempt) -> Outcome | LeaseLost | None:
        """Run one job in a child, when one is free."""
        try:
            return await self.run_at(attempt, fresh=attempt.job.crashes > 1)
        except CannotRunHere as unable:
            log.error("job %d (%s) is left for another worker: %s", attempt.job.id, attempt.job.task, unable)
            return put_off(UNABLE_PAUSE, str(unable))

    async def run_at(
        self, attempt: Attempt, place: ImportPath | None = None, *, fresh: bool = False
    ) -> Outcome | LeaseLost | None:
        """The same for a handler that the child has to find first; `fresh`: where nothing has run before."""
        if not await self._has_room(attempt):
            return given_back("no child process came free in time")
        child: ChildHandle | None = None
        try:
            child = await (self._take_fresh() if fresh else self._take())
            outcome = await child.run(attempt, place)
            self._refused_times = 0
            return outcome
        except ChildNotStarted as refused:
            return self._put_off(attempt, refused)
        except HandlerDied as died:
            await self._died(attempt, died)
            why = self._lease_table.ended_for(attempt.slot, attempt.generation)
            if why and not (attempt.phase is COMMITTED or attempt.lost):
                return _ended_by_pacemaker(attempt, StopReason(why))
            raise
        finally:
            self._let_go(child)

    def _put_off(self, attempt: Attempt, refused: ChildNotStarted) -> Outcome:
        """Not the job's fault: it waits with its attempt given back, longer each time."""
        pause = min(NO_CHILD_PAUSE * 2 ** min(self._refused_times, 10), NO_CHILD_PAUSE_MAX)
        self._refused_times += 1
        log.error(
            "job %d (%s) waits for %g s: %s", attempt.job.id, attempt.job.task, pause.total_seconds(), refused
        )
        return put_off(pause, str(refused))

    async def _has_room(self, attempt: Attempt) -> bool:
        """Wait for a place among the children, but not so long that little of the job's time is left."""
        if not self._room.locked():
            return await self._room.acquire()
        try:
            async with asyncio.timeout((attempt.timeout_at - time.monotonic()) * WAIT_SHARE):
                return await self._room.acquire()
        except TimeoutError:
            return False

    async def _take(self) -> ChildHandle:
        """The child that was busy last, since it is the warmest; or a new one."""
        while self._idle:
            child, timer = self._idle.popitem()
            timer.cancel()
            if child.fit:
                return child
            self._dismiss(child, None)
        return await self._start()

    async def _take_fresh(self) -> ChildHandle:
        """A new one; where that would be one too many, the coldest of the idle ones leaves for it."""
        if len(self._all) >= self._most and self._idle:
            child = next(iter(self._idle))
            self._idle.pop(child).cancel()
            self._dismiss(child, None)
        return await self._start()

    async def _start(self) -> ChildHandle:
        try:
            child = ChildHandle(ChildProcess(), self._lease_table)
        except OSError as refused:  # no process, no memory: not the job's fault
            raise ChildNotStarted(f"no child process could be started: {refused}") from refused
        self._all.add(child)
        try:
            await child.send_greeting(self._greeting())
        except BaseException:
            self._dismiss(child, None)
            raise
        return child

    def _greeting(self) -> ChildGreeting:
        as_json, level = logging_as_configured() or (None, logging.getLogger().level)
        return ChildGreeting(
            # Over the line, not on the command line: a DSN may hold a password.
            dsn=self._settings.dsn,
            pooler=self._settings.pooler,
            parent=os.getpid(),
            path=[entry for entry in sys.path if isinstance(entry, str)],
            places=self._places,
            log_json=as_json,
            log_level=level,
        )

    async def _died(self, attempt: Attempt, died: HandlerDied) -> None:
        """Between its last word and its end it may have committed: then only the rows know."""
        try:
            if attempt.phase is AttemptPhase.COMMITTING:
                await self._ask_rows(attempt, died)
        finally:
            attempt.fenced = False
            if attempt.phase in BLOCK_OPEN:
                attempt.phase = WORKING

    def _let_go(self, child: ChildHandle | None) -> None:
        """Keep a child for the next job, or have another take its place."""
        if child is not None and child.fit and child.begun < self._config.recycle_after:
            timer = asyncio.get_running_loop().call_later(IDLE_FOR, self._retire, child)
            self._idle[child] = timer
            self._room.release()
        elif child is not None:
            self._dismiss(child, self._room)
        else:
            self._room.release()

    def _retire(self, child: ChildHandle) -> None:
        if self._idle.pop(child, None) is not None:
            self._dismiss(child, None)

    def _dismiss(self, child: ChildHandle, room: asyncio.Semaphore | None) -> None:
        """See a child off, in the background; its place is free when it has gone."""
        leaving = asyncio.create_task(self._see_off(child, room))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _see_off(self, child: ChildHandle, room: asyncio.Semaphore | None) -> None:
        try:
            await child.end()
        finally:
            self._all.discard(child)
            if room is not None:
                room.release()

    async def close(self) -> None:
        """The worker leaves, and its children with it."""
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        await asyncio.gather(*self._leaving, *(child.end() for child in self._all), return_exceptions=True)
        self._all.clear()


def _ended_by_pacemaker(attempt: Attempt, why: StopReason) -> Outcome | None:
    """The job had to stop while our loop was blocked: what the deadline monitor would have said of it."""
    log.warning(
        "the process of job %d (%s) was ended while the event loop was blocked (%s)",
        attempt.job.id, attempt.job.task, why,
    )  # fmt: skip
    attempt.stopping = why
    attempt.job._lose()
    return after_stop(attempt)
