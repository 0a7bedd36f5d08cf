"""What the watchdog does over and over: a function each."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from faultline.errors import CannotConnect, FaultlineError, ReadOnlyServer, ServerUnavailable
from faultline.failpoints import reach
from faultline.store import calls
from faultline.store.line import Line
from faultline.telemetry import emit
from faultline.telemetry.events import tell
from faultline.telemetry.seldom import Seldom
from faultline.watchdog.steps import Steps, steady

log = logging.getLogger("faultline.watchdog")

BATCH = 500
PRUNE_BATCH = 1000
SOONEST = 0.02

EARLY = 0.9
"""The share of a tick after which a round may begin: `every` calls a little early, and not in vain."""

LATE = 1.0
"""The share of a tick after which a round is late: who stands by then makes it, and has the duty."""

STANDBY_TICKS = 1.8
"""Who did not make the last round looks less often: fifty that look each tick are a load.

With LATE, a gap ends before it is so long that all would hold fire: three times what `round` is asked with.
"""

ANNOUNCE_EVERY = 0.25
ANNOUNCE_SHARE = 100
"""Looking for free jobs takes at most one hundredth of a core, however many lanes there are."""

RESIGN_SECONDS_MAX = 1.0

SHARE = 20
"""Walking the lanes takes at most one twentieth of a core: after it, a rest of twenty times its time."""


TELL_AGAIN = 60.0
"""Seconds between two lines about the same failure of the same chore."""

_seldom = Seldom(TELL_AGAIN)


class Rounds:
    """Reap and rescue when it is our turn; promote then, and when a job falls due before the next turn."""

    def __init__(self, line: Line, tick: timedelta) -> None:
        self.line = line
        self.tick = tick
        self.on_duty = True
        """The last round was ours, as far as we know."""
        self._walk_at = 0.0
        self._expects = False
        self._steps = Steps()

    async def __call__(self) -> float | None:
        """One turn; answers in how many seconds to come again: a tick, or when the next job falls due."""
        tick = self.tick.total_seconds()
        share = EARLY if self.on_duty else LATE
        asked_at = steady()
        made = await self.line.run(calls.make_round(self.tick * share))
        # The one on duty that comes early, for a job it expects, stays so though the round is not due.
        self.on_duty = made.mine or (self.on_duty and self._expects)
        self._steps.look(made, asked_at, steady())
        if made.mine:
            reach("round.won")
            began = time.monotonic()
            await self._walk()
            tell("round_made", seconds=time.monotonic() - began)
        elif not self._expects:
            return tick * STANDBY_TICKS
        await _alone("promote", promote(self.line))
        reach("round.promoted")
        next_due = await self.line.run(calls.next_due())
        self._expects = next_due is not None and next_due < tick
        return tick if next_due is None else min(tick, max(next_due, SOONEST))

    async def _walk(self) -> None:
        began = time.monotonic()
        if began < self._walk_at:
            return
        await _alone("reap", reap(self.line))
        reach("round.reaped")
        await _alone("rescue", rescue(self.line))
        ended = time.monotonic()
        self._walk_at = ended + (ended - began) * SHARE - self.tick.total_seconds()


class Leading:
    """The slow chores, when we lead: floors and partitions each time, damage and old things now and then."""

    def __init__(self, line: Line, worker: int, on_duty: Callable[[], bool]) -> None:
        self.line = line
        self.worker = worker
        self.leads = False
        self._on_duty = on_duty
        self._last: dict[str, float] = {}

    async def __call__(self) -> None:
        # Of those that stand by only the one on duty asks: somebody always is, and fifty need not.
        if not (self.leads or self._on_duty()):
            return
        self.leads = await self.line.run(calls.lead(self.worker))
        tell("watchdog_state", leads=self.leads)
        if not self.leads:
            return
        await _alone("floors", self.line.run(calls.floors()))
        await _alone("partitions", self.line.run(calls.partitions()))
        if self._is_time("damage", 60):
            await _alone("quarantine", self.line.run(calls.quarantine()))
            await _alone("quiet_lanes", self.line.run(calls.quiet_lanes()))
        if self._is_time("old", 300):
            await _alone("prune", prune(self.line))
            await _alone("drop_partitions", self.line.run(calls.drop_partitions()))

    async def resign(self) -> None:
        """Leave the lead to whoever asks next, instead of letting its time run out."""
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
    """While we lead: wake workers for jobs that came without a hint, so that not each of them has to look.

    A job enqueued in somebody's own transaction is such a one; one given back by a worker that stops, too.
    """

    def __init__(self, line: Line, leads: Callable[[], bool]) -> None:
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
        self._told = free  # told once: who has no room now asks when it has
        # One slow turn says little, it may have waited for another chore; many in a row do.
        self._takes = min(time.monotonic() - began, self._takes * 2)
        return max(ANNOUNCE_EVERY, self._takes * ANNOUNCE_SHARE)


async def _alone(name: str, chore: Awaitable[Any]) -> None:
    """One chore's failure is its own: it is logged, and those after it get their turn."""
    try:
        await chore
    except (CannotConnect, ReadOnlyServer):
        raise  # nothing that follows could be done either
    except ServerUnavailable as trouble:
        log.debug("%s could not be done now: %s", name, trouble)
    except Exception as error:
        tell("chore_failed", chore=name)
        if _seldom.allows(f"{name} {type(error).__name__}"):
            tell_failed(name, error)


def tell_failed(name: str, error: Exception) -> None:
    """An error of our own says what happened and what to do; where another came from has to be seen."""
    trace = None if isinstance(error, FaultlineError) else error
    log.error("%s failed, and gets its next turn as usual: %s", name, error, exc_info=trace)


async def reap(line: Line) -> None:
    """Take back the leases that nobody renewed, and tell it."""
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


async def promote(line: Line) -> None:
    """Line up what is due, and wake who waits for it."""
    while True:
        moved = await line.run(calls.promote(BATCH))
        for queue, _ in moved:
            await line.run(calls.wake(queue))
        if sum(count for _, count in moved) < BATCH:
            return


async def rescue(line: Line) -> None:
    """Give free jobs behind a floor a new place."""
    await line.run(calls.rescue(BATCH))


async def prune(line: Line) -> None:
    """Delete what is old, a bounded batch at a time."""
    more = True
    while more:
        deleted: tuple[int, ...] = await line.run(calls.prune(PRUNE_BATCH))
        more = max(deleted) >= PRUNE_BATCH
