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
from faultline.outcome import Outcome, Released, Snooze
from faultline.telemetry import logging_as_configured
from faultline.worker.board import Board
from faultline.worker.hand import Hand
from faultline.worker.judge import after_stop
from faultline.worker.places import Place
from faultline.worker.spawned import Spawned
from faultline.worker.ward import CannotRunHere, NoChild, Ward
from faultline.worker.wire import Greeting

log = logging.getLogger("faultline.worker")

IDLE_FOR = 60.0
"""Seconds after which a child that has nothing to do is let go."""

WAIT_SHARE = 0.25
"""Which part of its time a job may wait for a child; then it goes back, with its attempt, for any worker."""

NO_CHILD_PAUSE = timedelta(seconds=1)
NO_CHILD_PAUSE_MAX = timedelta(minutes=1)
"""How long a job waits for which the system had no process: doubled while it stays so."""

UNABLE_PAUSE = timedelta(seconds=15)

AskRows = Callable[[Hand, Exception], Awaitable[None]]
"""Finds out what became of a commit in which its process died."""


class Children:
    """Up to `most` processes, each of which runs one job at a time."""

    def __init__(
        self,
        config: WorkerConfig,
        settings: Settings,
        places: dict[str, Place],
        board: Board,
        ask_rows: AskRows,
        most: int,
    ) -> None:
        self._config = config
        self._settings = settings
        self._places = places
        self._board = board
        self._ask_rows = ask_rows
        self._most = most
        self._room = asyncio.Semaphore(most)
        self._refused_times = 0
        self._idle: dict[Ward, asyncio.TimerHandle] = {}
        self._all: set[Ward] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def run(self, hand: Hand) -> Outcome | LeaseLost | None:
        """Run one job in a child, when one is free."""
        try:
            return await self.run_at(hand, fresh=hand.job.crashes > 1)
        except CannotRunHere as unable:
            log.error("job %d (%s) is left for another worker: %s", hand.job.id, hand.job.task, unable)
            return Snooze(UNABLE_PAUSE, str(unable))

    async def run_at(
        self, hand: Hand, place: Place | None = None, *, fresh: bool = False
    ) -> Outcome | LeaseLost | None:
        """The same for a handler that the child has to find first; `fresh`: where nothing has run before."""
        if not await self._has_room(hand):
            return Released("no child process came free in time")
        ward: Ward | None = None
        try:
            ward = await (self._take_fresh() if fresh else self._take())
            outcome = await ward.run(hand, place)
            self._refused_times = 0
            return outcome
        except NoChild as refused:
            return self._put_off(hand, refused)
        except HandlerDied as died:
            await self._died(hand, died)
            if (why := self._board.ended_for(hand.slot, hand.generation)) and not (hand.settled or hand.lost):
                return _ended_by_pacemaker(hand, why)
            raise
        finally:
            self._let_go(ward)

    def _put_off(self, hand: Hand, refused: NoChild) -> Snooze:
        """Not the job's fault: it waits with its attempt given back, longer each time."""
        pause = min(NO_CHILD_PAUSE * 2 ** min(self._refused_times, 10), NO_CHILD_PAUSE_MAX)
        self._refused_times += 1
        log.error(
            "job %d (%s) waits for %g s: %s", hand.job.id, hand.job.task, pause.total_seconds(), refused
        )
        return Snooze(pause, str(refused))

    async def _has_room(self, hand: Hand) -> bool:
        """Wait for a place among the children, but not so long that little of the job's time is left."""
        if not self._room.locked():
            return await self._room.acquire()
        try:
            async with asyncio.timeout((hand.timeout_at - time.monotonic()) * WAIT_SHARE):
                return await self._room.acquire()
        except TimeoutError:
            return False

    async def _take(self) -> Ward:
        """The child that was busy last, since it is the warmest; or a new one."""
        while self._idle:
            ward, timer = self._idle.popitem()
            timer.cancel()
            if ward.fit:
                return ward
            self._dismiss(ward, None)
        return await self._start()

    async def _take_fresh(self) -> Ward:
        """A new one; where that would be one too many, the coldest of the idle ones leaves for it."""
        if len(self._all) >= self._most and self._idle:
            ward = next(iter(self._idle))
            self._idle.pop(ward).cancel()
            self._dismiss(ward, None)
        return await self._start()

    async def _start(self) -> Ward:
        try:
            ward = Ward(Spawned(), self._board)
        except OSError as refused:  # no process, no memory: not the job's fault
            raise NoChild(f"no child process could be started: {refused}") from refused
        self._all.add(ward)
        try:
            await ward.greet(self._greeting())
        except BaseException:
            self._dismiss(ward, None)
            raise
        return ward

    def _greeting(self) -> Greeting:
        as_json, level = logging_as_configured() or (None, logging.getLogger().level)
        return Greeting(
            # Over the line, not on the command line: a DSN may hold a password.
            dsn=self._settings.dsn,
            pooler=self._settings.pooler,
            parent=os.getpid(),
            path=[entry for entry in sys.path if isinstance(entry, str)],
            places=self._places,
            log_json=as_json,
            log_level=level,
        )

    async def _died(self, hand: Hand, died: HandlerDied) -> None:
        """Between its last word and its end it may have committed: then only the rows know."""
        try:
            if hand.committing and not hand.settled:
                await self._ask_rows(hand, died)
        finally:
            hand.committing = hand.fenced = False

    def _let_go(self, ward: Ward | None) -> None:
        """Keep a child for the next job, or have another take its place."""
        if ward is not None and ward.fit and ward.begun < self._config.recycle_after:
            timer = asyncio.get_running_loop().call_later(IDLE_FOR, self._retire, ward)
            self._idle[ward] = timer
            self._room.release()
        elif ward is not None:
            self._dismiss(ward, self._room)
        else:
            self._room.release()

    def _retire(self, ward: Ward) -> None:
        if self._idle.pop(ward, None) is not None:
            self._dismiss(ward, None)

    def _dismiss(self, ward: Ward, room: asyncio.Semaphore | None) -> None:
        """See a child off, in the background; its place is free when it has gone."""
        leaving = asyncio.create_task(self._see_off(ward, room))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _see_off(self, ward: Ward, room: asyncio.Semaphore | None) -> None:
        try:
            await ward.end()
        finally:
            self._all.discard(ward)
            if room is not None:
                room.release()

    async def close(self) -> None:
        """The worker leaves, and its children with it."""
        for timer in self._idle.values():
            timer.cancel()
        self._idle.clear()
        await asyncio.gather(*self._leaving, *(ward.end() for ward in self._all), return_exceptions=True)
        self._all.clear()


def _ended_by_pacemaker(hand: Hand, why: str) -> Outcome | None:
    """The job had to stop while our loop was blocked: what the overseer would have said of it."""
    log.warning(
        "the process of job %d (%s) was ended while the event loop was blocked (%s)",
        hand.job.id, hand.job.task, why,
    )  # fmt: skip
    hand.stopping = why
    hand.job._lose()
    return after_stop(hand)
