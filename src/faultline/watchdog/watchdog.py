"""The watchdog: rounds that every process may make, and slow chores for one leader. `every` lives here."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

from faultline.errors import PermissionDenied
from faultline.store.session import OUTAGE, DbSession
from faultline.telemetry.rate_limited import RateLimited
from faultline.watchdog import chores
from faultline.watchdog.chores import tell_failed
from faultline.watchdog.scheduling import Scheduling

log = logging.getLogger("faultline.watchdog")

TELL_AGAIN = 60.0
"""Seconds between two lines about the same missing grant."""

Chore = Callable[[], Awaitable[float | None]]


async def every(period: float, chore: Chore, name: str, first_after: float = 0.0) -> None:
    """Run a chore, and again each `period`, until cancelled; the chore may answer with another pause.

    A chore that fails is logged and gets its next turn as usual: the watchdog has to outlive the failures
    that it repairs. An outage is the worker's to log; here it is only waited out.
    """
    await asyncio.sleep(first_after)
    seldom = RateLimited(TELL_AGAIN)
    while True:
        rest = None
        try:
            rest = await chore()
        except OUTAGE as trouble:
            log.debug("%s waits for the database: %s", name, trouble)
        except PermissionDenied as refused:
            # The next turn will be refused as well: a line at times, not a traceback a second.
            if seldom.allows("refused"):
                log.error(
                    "%s is not allowed, others may do it; it needs faultline_watchdog: %s", name, refused
                )
        except Exception as error:
            if seldom.allows(type(error).__name__):
                tell_failed(name, error)
        await asyncio.sleep((period if rest is None else rest) * random.uniform(0.9, 1.0))


LEAD_AFTER = 1.0
"""Seconds after its start in which a watchdog leaves the slow chores to others, and its CPU to the jobs."""

LOOK_AFTER = 0.3
"""The same for its rounds, in ticks: a new worker has jobs to start, and fifty may start together."""


class Watchdog:
    """Runs beside each worker, over a connection of its own.

    Watchdogs have no link to each other: they coordinate through the database.
    """

    def __init__(self, dsn: str, worker: int, tick: timedelta, *, prepare: bool = True) -> None:
        self.line = DbSession(dsn, prepare=prepare)
        self.worker = worker
        self.tick = tick

    async def run(self) -> None:
        """Make rounds and lead chores until cancelled."""
        seconds = self.tick.total_seconds()
        first = LOOK_AFTER * seconds * random.uniform(0.5, 1.0)
        rounds = chores.Rounds(self.line, self.tick)
        leading = chores.Leading(self.line, self.worker, lambda: rounds.on_duty)
        announcing = chores.Announcing(self.line, lambda: leading.leads)
        scheduling = Scheduling(self.line, self.tick, lambda: rounds.on_duty)
        parts = [
            asyncio.create_task(every(seconds, rounds, "the round", first)),
            asyncio.create_task(every(max(seconds, 1.0), leading, "leading", LEAD_AFTER)),
            asyncio.create_task(every(chores.ANNOUNCE_EVERY, announcing, "announcing", first)),
            asyncio.create_task(every(min(seconds, 1.0), scheduling, "scheduling", first)),
        ]
        try:
            await asyncio.gather(*parts)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await leading.resign()
            await self.line.close()
