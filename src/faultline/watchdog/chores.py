"""The periodic work of the watchdog: a function each."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, Literal, TypeVar, get_args

from faultline.errors import CannotConnect, FaultlineError, ReadOnlyServer, ServerUnavailable
from faultline.failpoints import failpoint
from faultline.store import calls
from faultline.store.session import DbSession
from faultline.telemetry import emit
from faultline.telemetry.events import record_metric
from faultline.telemetry.rate_limited import RateLimited
from faultline.watchdog.clock_steps import Steps, steady
from faultline.watchdog.unknown_tasks import UnknownTasks

log = logging.getLogger("faultline.watchdog")

T = TypeVar("T")

ChoreName = Literal[
    "reap", "promote", "rescue", "floors", "partitions", "quarantine", "quiet_lanes", "prune",
    "drop_partitions", "unknown_tasks", "expire", "mark_full", "sweep_gates", "limit_floors",
    "absent_schedules",
]  # fmt: skip

CHORES: Final[tuple[ChoreName, ...]] = get_args(ChoreName)

BATCH = 500
PRUNE_BATCH = 1000
EXPIRE_BATCHES_MAX = 10
"""In one round: leases are reaped and jobs promoted on the same line."""
GATES_BATCH = 100
SOONEST = 0.02

EARLY = 0.9
"""The part of a tick after which a round may begin: a slightly early call of `every` is not wasted."""

LATE = 1.0
"""The part of a tick after which a round is late: a standby then makes it, and takes over the duty."""

STANDBY_TICKS = 1.8
"""Standbys check less often: fifty checks each tick are a load.

With LATE, a gap ends before all would hold fire: that is three times the period given to `round`.
"""

STALE_TICKS = 2.0
"""Ticks after which a round that was won is too old to reap by.

This process stood still meanwhile, and its round knows nothing of the gap.
"""

NEGLECTED_LOOKS = 10
"""The number of late rounds in a row after which a standby reaps.

After an outage the watchdog of the first round holds its row while it notes the gap: one late round is
weak evidence.
"""

ANNOUNCE_EVERY = 0.25
ANNOUNCE_SHARE = 100
"""Looking for free jobs takes at most one hundredth of a core, however many lanes there are."""

RESIGN_SECONDS_MAX = 1.0

SHARE = 20
"""Walking the lanes takes at most one twentieth of a core: after it, a rest of twenty times its time."""


TELL_AGAIN = 60.0
"""Seconds between two lines about the same failure of the same chore."""

_seldom = RateLimited(TELL_AGAIN)


class Rounds:
    """Reap and rescue when it is our turn; promote then, and when a job falls due before the next turn."""

    def __init__(self, line: DbSession, tick: timedelta) -> None:
        self.line = line
        self.tick = tick
        self.on_duty = True
        """The last round was ours, as far as we know."""
        self._walk_at = 0.0
        self._mark_at = 0.0
        self._neglected = 0
        self._expects = False
        self._is_asked_again = False
        self._soonest = SOONEST
        self._steps = Steps()

    async def __call__(self) -> float | None:
        """One turn; answers the seconds until the next: a tick, or the time until the next job falls due."""
        tick = self.tick.total_seconds()
        share = EARLY if self.on_duty else LATE
        asked_at = steady()
        looks, self._neglected = self._neglected, 0
        made = await self.line.run(calls.make_round(self.tick * share))
        self._neglected = looks + 1 if made.neglected else 0
        # The one on duty that comes early, for an expected job, keeps the duty though the round is not due.
        self.on_duty = made.mine or (self.on_duty and self._expects)
        answered_at = steady()
        self._steps.look(made, asked_at, answered_at)
        if made.mine and self._is_stale(answered_at - asked_at):
            return SOONEST
        if made.mine or self._neglected >= NEGLECTED_LOOKS:
            failpoint("round.won")
            began = time.monotonic()
            await self._walk()
            await _alone("expire", expire(self.line))
            await self._mark_full()
            record_metric("round_made", seconds=time.monotonic() - began)
        elif not self._expects:
            return tick * STANDBY_TICKS
        moved = await _alone("promote", promote(self.line)) or 0
        moved += await _alone("sweep_gates", sweep_gates(self.line)) or 0
        failpoint("round.promoted")
        next_due = await self.line.run(calls.next_due())
        self._expects = next_due is not None and next_due < tick
        if next_due is None:
            return tick
        # A due job that was not moved is locked, or its limit has no slot: looking often does not help.
        self._soonest = SOONEST if moved or next_due > 0 else min(self._soonest * 2, tick)
        return min(tick, max(next_due, self._soonest))

    def _is_stale(self, waited: float) -> bool:
        """Whether to make another round first. Of two in a row the second counts: a slow server must reap."""
        self._is_asked_again = not self._is_asked_again and waited > self.tick.total_seconds() * STALE_TICKS
        return self._is_asked_again

    async def _mark_full(self) -> None:
        """Seldom where queues are so deep that counting takes long."""
        began = time.monotonic()
        if began < self._mark_at:
            return
        await _alone("mark_full", self.line.run(calls.mark_full()))
        ended = time.monotonic()
        self._mark_at = ended + (ended - began) * SHARE - self.tick.total_seconds()

    async def _walk(self) -> None:
        began = time.monotonic()
        if began < self._walk_at:
            return
        await _alone("reap", reap(self.line))
        failpoint("round.reaped")
        await _alone("rescue", rescue(self.line))
        ended = time.monotonic()
        self._walk_at = ended + (ended - began) * SHARE - self.tick.total_seconds()


class Leading:
    """The slow chores, for the leader: floors and partitions each time, damage and old rows at times."""

    def __init__(self, line: DbSession, worker: int, on_duty: Callable[[], bool]) -> None:
        self.line = line
        self.worker = worker
        self.leads = False
        self._on_duty = on_duty
        self._last: dict[str, float] = {}
        self._unknown = UnknownTasks(line)

    async def __call__(self) -> None:
        # Of the standbys only the one on duty asks for the lead: there always is one, and fifty need not ask.
        if not (self.leads or self._on_duty()):
            return
        self.leads = await self.line.run(calls.lead(self.worker))
        record_metric("watchdog_state", leads=self.leads)
        if not self.leads:
            return
        await _alone("floors", self.line.run(calls.floors()))
        await _alone("limit_floors", self.line.run(calls.raise_limit_floors()))
        await _alone("partitions", self.line.run(calls.partitions()))
        await _alone("unknown_tasks", self._unknown())
        if self._is_time("damage", 60):
            await _alone("quarantine", self.line.run(calls.quarantine()))
            await _alone("quiet_lanes", self.line.run(calls.quiet_lanes()))
            await _alone("absent_schedules", pause_absent(self.line))
        if self._is_time("old", 300):
            await _alone("prune", prune(self.line))
            await _alone("drop_partitions", self.line.run(calls.drop_partitions()))

    async def resign(self) -> None:
        """Give the lead up for the next that asks, instead of waiting for the end of its time."""
        if self.leads:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(RESIGN_SECONDS_MAX):
                    await self.line.run(calls.lead(self.worker, timedelta(0)))

    def _is_time(self, chore: str, seconds: float) -> bool:
        now = time.monotonic()
        if now - self._last.get(chore, -seconds) < seconds:
            return False
        self._last[chore] = now
        return True


class Announcing:
    """As leader: wake workers for jobs that came without a hint, so that not each worker has to poll.

    Jobs enqueued in a user's own transaction have no hint; nor have jobs that a stopping worker gives back.
    """

    def __init__(self, line: DbSession, leads: Callable[[], bool]) -> None:
        self.line = line
        self._leads = leads
        self._told: frozenset[tuple[str, int]] = frozenset()
        self._takes = 0.001

    async def __call__(self) -> float | None:
        if not self._leads():
            self._told = frozenset()
            return None
        began = time.monotonic()
        found = await self.line.run(calls.first_free())
        free = frozenset(found)
        for queue in sorted({queue for queue, _ in free - self._told}):
            await self.line.run(calls.wake(queue))
        self._told = free  # announced once: a worker without room asks when it has room
        # One slow turn says little: it may have waited for another chore. Many in a row do.
        self._takes = min(time.monotonic() - began, self._takes * 2)
        return max(ANNOUNCE_EVERY, self._takes * ANNOUNCE_SHARE)


async def _alone(name: ChoreName, chore: Awaitable[T]) -> T | None:
    """Isolate one chore's failure: it is logged, and the later chores get their turn."""
    try:
        return await chore
    except (CannotConnect, ReadOnlyServer):
        raise  # the later chores would fail too
    except ServerUnavailable as trouble:
        log.debug("%s could not be done now: %s", name, trouble)
    except Exception as error:
        record_metric("chore_failed", chore=name)
        if _seldom.allows(f"{name} {type(error).__name__}"):
            tell_failed(name, error)
    return None


def tell_failed(name: str, error: Exception) -> None:
    """The text of our own errors is complete; other errors need their traceback."""
    trace = None if isinstance(error, FaultlineError) else error
    log.error("%s failed, and gets its next turn as usual: %s", name, error, exc_info=trace)


async def reap(line: DbSession) -> None:
    """Take back the leases that were not renewed, and emit events."""
    while True:
        lost = await line.run(calls.reap(BATCH))
        for lease in lost:
            level, state = (logging.ERROR, "dead") if lease.died else (logging.WARNING, "queued")
            emit(
                "lease_expired", level, job_id=lease.job_id, token=lease.token, worker=lease.worker,
                task=lease.task, queue=lease.queue, died=lease.died, state=state,
            )  # fmt: skip
        if len(lost) < BATCH:
            return


async def expire(line: DbSession) -> None:
    """End jobs that no worker claimed in time. A claim takes none of them: what is left waits a tick."""
    for _ in range(EXPIRE_BATCHES_MAX):
        gone = await line.run(calls.expire(BATCH))
        for job in gone:
            emit("job_expired", job_id=job.id, task=job.task, queue=job.queue)
        if len(gone) < BATCH:
            return


async def promote(line: DbSession) -> int:
    """Promote due jobs, and wake the workers that wait for them; gives their number."""
    total = 0
    while True:
        moved = await line.run(calls.promote(BATCH))
        for queue, _ in moved:
            await line.run(calls.wake(queue))
        in_batch = sum(count for _, count in moved)
        total += in_batch
        if in_batch < BATCH:
            return total


async def sweep_gates(line: DbSession) -> int:
    """Admit jobs to slots that were freed without a claim, and wake workers; gives their number."""
    admitted = await line.run(calls.sweep_gates(GATES_BATCH))
    for queue, _ in admitted:
        await line.run(calls.wake(queue))
    return sum(count for _, count in admitted)


async def rescue(line: DbSession) -> None:
    """Give free jobs behind a floor a new place."""
    await line.run(calls.rescue(BATCH))


async def pause_absent(line: DbSession) -> None:
    """Pause the schedules that the newest release of their app does not have."""
    for name, app in await line.run(calls.pause_absent()):
        log.warning(
            "schedule %s is paused: the newest release of app %s does not have it, and no older release was "
            "seen for ten minutes", name, app,
        )  # fmt: skip


async def prune(line: DbSession) -> None:
    """Delete old rows, a bounded batch at a time."""
    while await line.run(calls.prune_occurrences(PRUNE_BATCH)) >= PRUNE_BATCH:
        pass
    more = True
    while more:
        deleted: tuple[int, ...] = await line.run(calls.prune(PRUNE_BATCH))
        more = max(deleted) >= PRUNE_BATCH
