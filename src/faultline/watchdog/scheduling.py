"""Scheduling: a chore that enqueues what schedules are due for. Any number of watchdogs may run it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from faultline.errors import CannotConnect, ReadOnlyServer, ServerUnavailable
from faultline.failpoints import failpoint
from faultline.store import calls
from faultline.store.rows import DueSchedule, FiredSchedule
from faultline.store.session import DbSession
from faultline.telemetry.events import record_metric
from faultline.telemetry.rate_limited import RateLimited
from faultline.watchdog.firings import firing_of, next_of

log = logging.getLogger("faultline.watchdog")

BATCH: Final = 250
"""Schedules in one call: computing their next times holds the event loop for some 10 ms."""

COMPUTED: Final = 50
"""Next times that one turn computes. The costliest, of an expression that never occurs, takes some 20 ms."""

SOONEST: Final = 0.02
TELL_AGAIN: Final = 600.0
"""Seconds between two lines about the same schedule."""


class Scheduling:
    """Looks for due schedules each tick, and when the next one is due before that."""

    def __init__(self, line: DbSession, tick: timedelta, on_duty: Callable[[], bool]) -> None:
        self.line = line
        self.tick = min(tick, timedelta(seconds=1))
        self._on_duty = on_duty
        self._seldom = RateLimited(TELL_AGAIN)

    async def __call__(self) -> float | None:
        """One turn; answers the seconds until the next."""
        if not self._on_duty():
            return None
        while True:
            found = await self.line.run(calls.due_schedules(self.tick, BATCH))
            uncomputed = [due for due in found if due.next_at is None]
            ready = [due for due in found if due.next_at is not None and due.ready_at <= due.moment]
            fired = await self._fire(ready) if ready else 0  # first: what cannot be computed delays nothing
            if uncomputed:
                await self._compute(uncomputed[:COMPUTED])
            if not fired or len(ready) < BATCH:
                return self._pause(found)

    def _pause(self, found: Sequence[DueSchedule]) -> float:
        """Until the soonest of those that are due within the tick; at once, to see what was computed."""
        tick = self.tick.total_seconds()
        coming = [(due.ready_at - due.moment).total_seconds() for due in found if due.ready_at > due.moment]
        if any(due.next_at is None for due in found):
            return SOONEST
        return min([tick, *(max(seconds, SOONEST) for seconds in coming)])

    async def _compute(self, uncomputed: Sequence[DueSchedule]) -> None:
        computed: list[dict[str, Any]] = []
        for due in uncomputed:
            computed.append(next_of(due))
            await asyncio.sleep(0)  # the leases of running jobs are extended on this event loop
        try:
            await self.line.run(calls.compute_next(computed))
        except (CannotConnect, ReadOnlyServer, ServerUnavailable):
            raise
        except Exception:
            await self._compute_singly(computed)
        self._tell_errors(computed)

    async def _compute_singly(self, computed: Sequence[dict[str, Any]]) -> None:
        for one in computed:
            try:
                await self.line.run(calls.compute_next([one]))
            except (CannotConnect, ReadOnlyServer, ServerUnavailable):
                raise
            except Exception as error:
                one["error"] = f"its next time could not be written: {error}"
                await self.line.run(calls.hold_schedule(one["name"], one["revision"], one["error"]))

    async def _fire(self, ready: Sequence[DueSchedule]) -> int:
        """Fire schedules; returns how many of them this watchdog fired."""
        firings = [firing_of(due) for due in ready]
        failpoint("schedules.computed")
        try:
            fired = await self.line.run(calls.fire(firings))
        except (CannotConnect, ReadOnlyServer, ServerUnavailable):
            raise
        except Exception:
            fired = await self._fire_singly(firings)  # one bad row must not stop the others
        failpoint("schedules.fired")
        self._tell_errors(firings)
        self._count(fired, ready, firings)
        await self._wake(fired)
        return sum(one.state == "fired" for one in fired)

    async def _fire_singly(self, firings: Sequence[dict[str, Any]]) -> list[FiredSchedule]:
        fired: list[FiredSchedule] = []
        for firing in firings:
            try:
                one = await self.line.run(calls.fire([firing]))
                fired.extend(one)
            except (CannotConnect, ReadOnlyServer, ServerUnavailable):
                raise
            except Exception as error:
                firing["error"] = f"it could not be fired: {error}"
                await self.line.run(calls.hold_schedule(firing["name"], firing["revision"], firing["error"]))
        return fired

    async def _wake(self, fired: Sequence[FiredSchedule]) -> None:
        """After the commit: a NOTIFY in it would make the commits of the server wait for each other."""
        queues = sorted({one.queue for one in fired if one.jobs})
        if queues:
            await self.line.run(calls.wake_each(queues))
        cancelled = [job_id for one in fired for job_id in one.cancelled]
        if cancelled:
            await self.line.run(calls.wake_cancelled(cancelled))

    def _count(
        self,
        fired: Sequence[FiredSchedule],
        ready: Sequence[DueSchedule],
        firings: Sequence[dict[str, Any]],
    ) -> None:
        mine = {one.name for one in fired if one.state == "fired"}
        lags = [
            (due.moment - due.next_at).total_seconds() for due in ready if due.next_at and due.name in mine
        ]
        if mine:
            made_up = sum(len(firing["late"]) for firing in firings if firing["name"] in mine)
            record_metric(
                "schedules_fired", enqueued=max(0, sum(one.jobs for one in fired) - made_up), made_up=made_up,
                skipped=sum(one.skipped for one in fired), lags=lags,
            )  # fmt: skip

    def _tell_errors(self, told: Sequence[dict[str, Any]]) -> None:
        for one in told:
            if (error := one.get("error")) is not None:
                record_metric("schedule_failed")
                if self._seldom.allows(one["name"]):
                    first = str(error).splitlines()[0]
                    log.error(
                        "schedule %s is failing, and is tried again each minute: %s", one["name"], first
                    )
