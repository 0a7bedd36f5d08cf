"""What a worker has in hand: jobs to be started, jobs running, and how much room is left."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from faultline.config import WorkerConfig
from faultline.job import Job
from faultline.telemetry.events import has_listeners
from faultline.worker.attempt import Attempt, HandlerState
from faultline.worker.claiming.unserved_tasks import UnservedTasks
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.stats import WorkerStats

BUFFERS = 4
"""Slots of the lease table, in buffers: one waits to be started, the others are recorded, or are to be."""

CLAIM_MAX = 500
"""The most jobs to claim in one call: with more, runners and server would take turns, not work together."""

FREED_MAX = 250
"""Gates that one claim names: the watchdog's sweep finds the others."""

RATE_WINDOW = 0.05
GROWTH_MAX = 8


class LoopBlocked(NamedTuple):
    """The loop's last tick before a handler blocked it, and that handler's job."""

    since: float
    by: Job


class WorkerState:
    """Shared by the parts of a worker; decides nothing but how many jobs to claim."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.lease_table = LeaseTable.make(config.jobs_max + config.buffer_max * BUFFERS)
        self.buffer: deque[Attempt] = deque()
        self.running: set[Attempt] = set()
        self.batched = 0
        """How many of the running jobs are in batches: a batch takes one slot."""
        self.batches = 0
        self.gathering = 0
        """How many jobs the open batches still wait for."""
        self.in_queue: Counter[str] = Counter()
        """How many jobs are in hand of each queue that has a limit of its own."""
        self.blocked: LoopBlocked | None = None
        """Set by the thread that watches the loop, taken by the deadline monitor's next look."""
        self.abandoned: list[Attempt] = []
        """Those whose threads would not stop: each costs a runner, and no second attempt starts beside it."""
        self.given_up: set[Attempt] = set()
        """Those whose coroutines would not stop; each is among the running ones as well."""
        self._held_since: float | None = None
        """Since when such handlers have held every thread; None while one is free."""
        self.left: int | None = None
        """How many more jobs may be taken at all; None without such a limit."""
        self._idle: deque[asyncio.Future[None]] = deque()
        """Runners that wait for a job, the last that began to wait first: it is the one that is warm."""
        self.hungry = asyncio.Event()
        self.woken = asyncio.Event()
        """There may be work: a job was enqueued, or a queue with a limit has room again."""
        self._freed: set[int] = set()
        """Gates of limits at which a lease has ended here, and that no claim has named yet."""
        self._held_back: dict[str, float] = {}
        """Why no jobs are claimed though there is room, each with the seconds after which one is tried."""
        self._trial_at = 0.0
        self.unfit = UnservedTasks()
        self.listening = False
        """Wake-ups can be heard, so there is no need to look often."""
        self._limited = frozenset(queue for queue, limit in config.queues.items() if limit is not None)
        self.settled_count = 0
        self.finished_count = 0
        self.figures = WorkerStats()
        self.on_ended: Callable[[Attempt], None] | None = None
        """Told of each lease that has ended, where the app has hooks on outcomes."""
        self._rate = 0.0
        self._low_mark = 0
        self._measured = (time.monotonic(), 0)
        self._idle_since: float | None = time.monotonic()
        """Since when there is nothing to do; None while there is."""

    @property
    def held_count(self) -> int:
        return self.lease_table.slots - self.lease_table.room

    def put(self, attempts: list[Attempt]) -> None:
        if self._limited:
            self.in_queue.update(
                attempt.job.queue for attempt in attempts if attempt.job.queue in self._limited
            )
        self.buffer.extend(attempts)
        if self._held_back:
            self._await_trial()

    async def until_filled(self) -> None:
        """Wait for a job in the buffer. Another runner may have it by then: look again."""
        if not self.buffer and not self.running and self._idle_since is None:
            self._idle_since = time.monotonic()
        idle = asyncio.get_running_loop().create_future()
        self._idle.append(idle)
        try:
            await idle
        except asyncio.CancelledError:
            if idle.cancelled():
                self._idle.remove(idle)
            else:
                self.tell_runners(1)  # the wake-up was meant for a runner: pass it on
            raise

    def tell_runners(self, jobs: int) -> None:
        """There are so many new jobs: wake as many runners, not all of them for one."""
        while jobs > 0 and self._idle:
            self._idle.pop().set_result(None)
            jobs -= 1

    def at_work_on(self) -> dict[int, Attempt]:
        """Every job an attempt of which is here, started or to be started, by its number."""
        return {attempt.job_id: attempt for attempt in (*self.buffer, *self.running, *self.abandoned)}

    def abandon(self, attempt: Attempt) -> None:
        self.abandoned.append(attempt)
        if len(self.abandoned) >= self.config.threads_max and self._held_since is None:
            self._held_since = time.monotonic()

    def give_up(self, attempt: Attempt) -> None:
        """A coroutine that would not stop; its runner is lost until it ends."""
        self.given_up.add(attempt)
        if len(self.given_up) >= self.config.jobs_max and self._held_since is None:
            self._held_since = time.monotonic()

    @property
    def stuck(self) -> int:
        """How many runners are lost to handlers that would not stop."""
        return len(self.abandoned) + len(self.given_up)

    def came_back(self, attempt: Attempt) -> None:
        if attempt.handler is HandlerState.GIVEN_UP:
            self.given_up.discard(attempt)
        else:
            self.abandoned.remove(attempt)
        self._held_since = None
        self.ask_for_more()

    @property
    def threads_lost(self) -> bool:
        """Whether no thread, or no coroutine, has come back for a lease, though all were told to stop.

        Not at once: who was told a moment ago may be about to return.
        """
        since = self._held_since
        return since is not None and time.monotonic() - since >= self.config.lease_for.total_seconds()

    def drop(self, *attempts: Attempt) -> None:
        """These leases have ended, one way or another; said twice, they have ended once."""
        if has_listeners():
            self.figures.ended(attempts)
        if self.on_ended is not None:
            for attempt in attempts:
                if attempt.generation:
                    self.on_ended(attempt)
        slots = []
        for attempt in attempts:
            if attempt.generation:
                attempt.generation = 0
                slots.append(attempt.slot)
                if attempt.gate is not None:
                    self._free_gate(attempt.gate)
                if self._limited and attempt.job.queue in self._limited:
                    self.in_queue[attempt.job.queue] -= 1
                    self.woken.set()
        self.lease_table.wipe(*slots)
        self.settled_count += len(slots)
        self.ask_for_more()

    def _free_gate(self, gate: int) -> None:
        """The next job of its key may start: a worker that sleeps would hear of it only from the watchdog."""
        if len(self._freed) < FREED_MAX:
            self._freed.add(gate)
        self.woken.set()

    def take_freed(self) -> list[int]:
        """The gates for the next claim to look at first."""
        freed = list(self._freed)
        self._freed.clear()
        return freed

    def wanted(self, coming: int = 0) -> int:
        """How many more jobs to claim: for the free runners, plus what they finish in about 100 ms.

        Never more than fits, and nothing while enough of it is still there, or coming, or while most of the
        room is taken by outcomes that are being recorded: a few large claims cost less than many small ones.
        """
        if self._held_back:
            return self._wanted_on_trial(coming)
        ahead, waiting = self._ahead(), len(self.buffer) + coming
        self._low_mark = max(ahead // 2, ahead - CLAIM_MAX)
        slots = len(self.running) - self.batched + self.batches
        free = self.config.jobs_max - slots - len(self.abandoned) + self.gathering
        missing, room = free + ahead - waiting, self.lease_table.room - coming
        if waiting > self._low_mark or (waiting and room < missing // 2):
            return 0
        most = room if self.left is None else min(room, self.left - coming)
        return max(0, min(missing, most, CLAIM_MAX))

    def _wanted_on_trial(self, coming: int) -> int:
        """While claims are held back: nothing, or, when it is time, one job that shows how things are."""
        busy = coming or self.buffer or self.running or not self.lease_table.room
        return 0 if busy or time.monotonic() < self._trial_at else 1

    def hold_back(self, why: str, trial_after: float = math.inf) -> None:
        """Claim nothing, since jobs could not be kept, or not recorded; after a while one is tried."""
        if why not in self._held_back:
            self._held_back[why] = trial_after
            self._await_trial()

    def hold_back_no_more(self, why: str) -> None:
        if self._held_back.pop(why, None) is not None:
            if self._held_back:
                self._await_trial()  # of what is left, which may be sooner, or at all
            self.hungry.set()

    def _await_trial(self) -> None:
        wait = max(self._held_back.values())
        self._trial_at = time.monotonic() + wait
        if wait < math.inf:
            asyncio.get_running_loop().call_later(wait + 0.01, self.hungry.set)

    def ask_for_more(self) -> None:
        """Wake the claimer when the buffer runs low; told once in a few jobs, and when a lease has ended."""
        if len(self.buffer) <= self._low_mark:
            self.hungry.set()

    def go_on_measuring(self) -> None:
        """Jobs come: the time in which there were none says nothing about the runners."""
        if self._idle_since is not None:
            at, count = self._measured
            self._measured = (at + time.monotonic() - max(at, self._idle_since), count)
            self._idle_since = None

    def _ahead(self) -> int:
        at, count = self._measured
        elapsed = time.monotonic() - at
        finished = self.finished_count - count
        if elapsed >= RATE_WINDOW:
            self._rate = finished / elapsed
            self._measured = (time.monotonic(), self.finished_count)
        elif finished >= self.config.jobs_max:
            # Faster than we thought, and the window is not over: do not starve the runners until it is. But
            # a few quick ones may be followed by slow ones, so no more than a few times as many at once.
            self._rate = max(self._rate, finished / max(elapsed, 0.001))
            return min(self._by_rate(), finished * GROWTH_MAX)
        return self._by_rate()

    def _by_rate(self) -> int:
        return min(int(self._rate * self.config.prefetch_for.total_seconds()), self.config.buffer_max)
