"""The claimer: claims as many jobs as `WorkerState.wanted` says."""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from uuid import uuid4

from faultline import failpoints
from faultline.store.call import Row
from faultline.telemetry import tracing
from faultline.worker.backend import Backend, ClaimParams
from faultline.worker.claiming.claim_request import ClaimRequest
from faultline.worker.claiming.floor_looks import FloorLooks
from faultline.worker.claiming.job_intake import JobIntake
from faultline.worker.claiming.lane_cursors import LaneCursors
from faultline.worker.outage import Outage
from faultline.worker.state import WorkerState

log = logging.getLogger("faultline.worker")

PAUSE_FIRST = 0.005

CLAIMS_AHEAD = 2
"""Claims under way besides the one whose jobs just came: one in the server, and one that it goes on with."""


class Claimer:
    """One claimer a worker, whatever its concurrency.

    A wake-up, or a buffer that runs low, ends its pause; at the latest it is time for the next poll.
    """

    def __init__(self, state: WorkerState, backend: Backend, intake: JobIntake, outage: Outage) -> None:
        self.state = state
        self.backend = backend
        self.intake = intake
        self.outage = outage
        self.wakes = 0
        """The number of wake-ups so far."""
        self.found_nothing = asyncio.Event()
        self.claimed = asyncio.Event()
        self.closed = asyncio.Event()
        self._closing = asyncio.Event()
        self._prepared: ClaimRequest | None = None
        """The next claim of a claimer that rests: the first wake-up sends it."""
        self._ahead: deque[ClaimRequest] = deque()
        """The claims that are under way, in their order: the first is awaited, or will be next."""
        config = state.config
        self._shared = [name for name, limit in config.queues.items() if limit is None]
        self._limited = {name: limit for name, limit in config.queues.items() if limit is not None}
        self._poll = config.poll_every.total_seconds()
        self._idle_poll = max(config.poll_every, config.idle_poll_every).total_seconds()
        self._cursors = {queue: LaneCursors() for queue in ("", *self._limited)}
        """For each queue with a limit, and by "" for all others together."""
        self._asked = {*self._limited, ""} if self._shared else {*self._limited}
        self._empty: set[str] = set()
        """Those of them in which a look from the floor found nothing, since there was anything in hand.

        One after the other: their turns for such a look need never fall together.
        """

    def close(self) -> None:
        """Claim no more.

        A claim that is under way comes to its end: cut off, its jobs would have to wait for a lease.
        """
        self._closing.set()
        self._prepared = None
        self.state.woken.set()
        self.state.hungry.set()

    def wake(self) -> None:
        """A wake-up came: there may be work. A prepared claim is sent here, as the bytes arrive.

        Half of the time that an idle worker needs to begin is the way from there through the loop.
        """
        self.wakes += 1
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            self._send(prepared)
        self.state.woken.set()

    def receive(self, request: ClaimRequest, rows: list[Row]) -> None:
        """Jobs of a claim, as its reply comes."""
        if rows:
            self.intake.take(rows, request.params.claim, request.sent, leaving=self._closing.is_set())
        if request.is_full:
            self._follow()

    async def run(self) -> None:
        """Claim until closed: at once while there is work and room, else after a wake-up or a pause."""
        await self._claim_on()
        self.closed.set()

    async def _claim_on(self) -> None:
        pause = PAUSE_FIRST
        while self._ahead or not self._closing.is_set():
            if not self._ahead and not self.state.wanted():
                self.state.hungry.clear()
                await self.state.hungry.wait()
                continue
            if not self._ahead or self._ahead[0].wakes == self.wakes:
                self.state.woken.clear()
            full = await self._feed()
            self.claimed.set()
            if full:
                pause = PAUSE_FIRST
            if full or self._ahead or self._closing.is_set():
                continue
            await self._rest(min(pause, self._look_in()))
            pause = min(pause * 2, self._idle_poll if self.state.listening else self._poll)

    def _look_in(self) -> float:
        """Seconds until the next look from the floor, for jobs that were committed late."""
        now = time.monotonic()
        due = (
            cursors.look_at - now
            for queue, cursors in self._cursors.items()
            if cursors.stepped_over and self._has_room(queue)
        )
        return max(0.0, min(due, default=self._idle_poll))

    def _has_room(self, queue: str) -> bool:
        """Whether more of a queue with a limit may be claimed: until then a look is of no use."""
        return queue not in self._limited or self.state.in_queue[queue] < self._limited[queue]

    async def _rest(self, pause: float) -> None:
        """Sleep until a wake-up comes, or the next poll is due."""
        woken = self.state.woken
        alarm = asyncio.get_running_loop().call_later(pause * random.uniform(0.8, 1.0), woken.set)
        prepared = None
        if self.state.listening and not woken.is_set():
            prepared = self._prepared = self._claim_ahead(self.state.wanted())
        try:
            await woken.wait()
        finally:
            alarm.cancel()
            self._prepared = None
        if prepared and prepared.was_sent:
            self._ahead.appendleft(prepared)  # it may have been answered and followed already

    def _follow(self) -> None:
        """A claim came back full: send the next ones, so that the server goes on meanwhile."""
        while not self._closing.is_set():
            rooms = [claim.room for claim in self._ahead if not claim.is_answered]
            coming = sum(rooms)
            room = self.state.wanted(coming) if len(rooms) < CLAIMS_AHEAD else 0
            claim = self._claim_ahead(room, coming)
            if claim is None:
                return
            self._send(claim, coming)
            if not claim.was_sent:
                return
            self._ahead.append(claim)

    def _send(self, claim: ClaimRequest, coming: int = 0) -> None:
        """Send a prepared claim, while so many jobs are coming by claims that are under way."""
        claim.wakes, claim.had_none = self.wakes, self.state.held_count + coming == 0
        claim.send()

    def _claim_ahead(self, room: int, coming: int | None = None) -> ClaimRequest | None:
        """The next claim, prepared; None where it has to be sent in its turn."""
        if not room or self._limited or tracing.tracer is not None or failpoints.are_armed():
            return None  # the last two take part in a claim that is sent in its turn
        begins = self._cursors[""].would_begin(coming)
        claim = self._request("", self._shared, room, begins)
        return claim if claim.prepare() else None

    async def _feed(self) -> bool:
        """Claim for the queues without a limit, then for each that has one; True if any came back full."""
        full, had_none = False, self._ahead[0].had_none if self._ahead else self.state.held_count == 0
        if self._shared:
            room = self._ahead[0].room if self._ahead else self.state.wanted()
            full = room > 0 and await self._claim(self._shared, room)
        for queue, limit in self._limited.items():
            room = min(limit - self.state.in_queue[queue], self.state.wanted())
            full |= room > 0 and await self._claim([queue], room)
        # What was given back while we asked we have not seen.
        if not had_none or self.state.held_count:
            self._empty.clear()
        if self._empty == self._asked:
            self.found_nothing.set()
        else:
            self.found_nothing.clear()
        return full

    async def _claim(self, queues: Sequence[str], room: int) -> bool:
        """Claim once; True if all came that there was room for, or as much as one claim may bring."""
        name = "" if queues is self._shared else queues[0]
        span = None if tracing.tracer is None else tracing.claiming(queues)
        if not self._ahead:
            trace = None if span is None else span.trace
            self._ahead.append(self._request(name, queues, room, self._cursors[name].begins(), trace))
        claim = self._ahead[0]
        try:
            await self.outage.outlast(claim.ask, refusals=True)
        finally:
            self._ahead.remove(claim)
        if self._cursors[name].floor_looks.wants_mark:
            await self._mark(self._cursors[name].floor_looks)
        if claim.found_jobs:
            self._empty.clear()
        elif not claim.stepped_over:
            self._empty.add(name)
        if span is not None and claim.jobs:
            tracing.quietly(span.end, claim.jobs)
        return claim.may_leave_more

    async def _mark(self, looks: FloorLooks) -> None:
        """Ask for the newest place: what stands before it is passed once it was looked at again."""
        asked_at = time.monotonic()
        try:
            looks.mark(await self.backend.newest_place(), asked_at)
        except Exception as trouble:  # of an outage: the next look asks again
            log.debug("the newest place could not be asked for: %s", trouble)

    def _request(
        self,
        name: str,
        queues: Sequence[str],
        room: int,
        begins: Mapping[int, int],
        trace: str | None = None,
    ) -> ClaimRequest:
        left = self.state.unfit.names()
        freed = self.state.take_freed()
        params = ClaimParams(uuid4(), queues, room, begins, trace=trace, except_tasks=left, freed=freed)
        return ClaimRequest(self.backend, params, self._cursors[name], self)
