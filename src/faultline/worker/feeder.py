"""The feeder: claims for the free runners, plus what they finish in about 100 ms."""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Final
from uuid import UUID

from faultline import failpoints
from faultline.failpoints import reach
from faultline.job import Begin, Job
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.call import Call, Row
from faultline.store.rows import Claimed, in_line
from faultline.task import Registry
from faultline.telemetry import emit, tracing
from faultline.telemetry.events import counted, hears
from faultline.worker.asking import Claim
from faultline.worker.doors import Carrier
from faultline.worker.hand import Hand
from faultline.worker.memory import Memory
from faultline.worker.outage import Outage
from faultline.worker.shelf import Shelf

PAUSE_FIRST = 0.005

CLAIMS_AHEAD = 2
"""Claims under way besides the one whose jobs just came: one in the server, and one that it goes on with."""

_ID = itemgetter(0)
_ARGS = itemgetter(Claimed._fields.index("args"))

HEAVY_CHARS: Final = 131_072
"""Arguments of a claim that was not filled, together, from which on their weight may be why.

A claim brings so many bytes at most, over a server one mebibyte. An eighth of that is enough: where a claim
ends before it, the next one begins with a heavier job.
"""

END_EARLY_MAX = 0.2
"""A handler is stopped up to this many seconds before its hard deadline."""


class Feeder:
    """One claimer a worker, whatever its concurrency.

    A wake-up or hunger ends its pause; the poll is the floor.
    """

    def __init__(
        self,
        shelf: Shelf,
        line: Carrier,
        tasks: Registry,
        outage: Outage,
        worker: int,
        begin: Begin,
        hurry: Callable[[float], None],
    ) -> None:
        self.shelf = shelf
        self.line = line
        self.tasks = tasks
        self.outage = outage
        self.worker = worker
        self.begin = begin
        self.hurry = hurry
        self.woken = shelf.woken
        self.found_nothing = asyncio.Event()
        self.claimed = asyncio.Event()
        self.closed = asyncio.Event()
        self._closing = asyncio.Event()
        self._ahead: deque[Claim] = deque()
        """The claims that are under way, in their order: the first is awaited, or will be next."""
        config = shelf.config
        self._shared = [name for name, limit in config.queues.items() if limit is None]
        self._limited = {name: limit for name, limit in config.queues.items() if limit is not None}
        self._poll = config.poll_every.total_seconds()
        self._idle_poll = max(config.poll_every, config.idle_poll_every).total_seconds()
        self._memories = {queue: Memory() for queue in ("", *self._limited)}
        self._asked = {*self._limited, ""} if self._shared else {*self._limited}
        self._empty: set[str] = set()
        """Those of them that were looked at from the floor, in vain, since there was anything in hand.

        One after the other: their turns to be looked at so need never fall together.
        """
        self._lease = config.lease_for.total_seconds()
        self._timeout = config.timeout.total_seconds()

    def close(self) -> None:
        """Claim no more.

        A claim that is under way comes to its end: cut off, its jobs would have to wait for a lease.
        """
        self._closing.set()
        self.shelf.eager = None
        self.woken.set()
        self.shelf.hungry.set()

    async def run(self) -> None:
        """Claim until closed: at once while there is work and room, else after a wake-up or a pause."""
        await self._claim_on()
        self.closed.set()

    async def _claim_on(self) -> None:
        pause = PAUSE_FIRST
        while self._ahead or not self._closing.is_set():
            if not self._ahead and not self.shelf.wanted():
                self.shelf.hungry.clear()
                await self.shelf.hungry.wait()
                continue
            if not self._ahead or self._ahead[0].wakes == self.shelf.wakes:
                self.woken.clear()
            full = await self._feed()
            self.claimed.set()
            if full:
                pause = PAUSE_FIRST
            if full or self._ahead or self._closing.is_set():
                continue
            await self._rest(min(pause, self._look_in()))
            pause = min(pause * 2, self._idle_poll if self.shelf.listening else self._poll)

    def _look_in(self) -> float:
        """Seconds until somebody who committed behind us has to be looked for, from the floor."""
        now = time.monotonic()
        due = (
            memory.look_at - now
            for queue, memory in self._memories.items()
            if memory.stepped_over and self._has_room(queue)
        )
        return max(0.0, min(due, default=self._idle_poll))

    def _has_room(self, queue: str) -> bool:
        """Whether more of a queue with a limit may be claimed: till then nobody can look, nor has to."""
        return queue not in self._limited or self.shelf.in_queue[queue] < self._limited[queue]

    async def _rest(self, pause: float) -> None:
        """Sleep until somebody says that there may be work, or the poll's turn has come."""
        alarm = asyncio.get_running_loop().call_later(pause * random.uniform(0.8, 1.0), self.woken.set)
        ahead = self._put_down()
        try:
            await self.woken.wait()
        finally:
            alarm.cancel()
            self.shelf.eager = None
        if ahead and ahead.was_sent:
            self._ahead.appendleft(ahead)  # it may have been answered and followed already

    def _put_down(self) -> Claim | None:
        """The next claim, ready to be sent by the wake-up itself, in the moment its bytes arrive.

        Half of what an idle worker needs to begin is the way from there through the loop to the socket.
        """
        if self.woken.is_set() or not self.shelf.listening:
            return None
        if claim := self._claim_ahead(self.shelf.wanted()):
            self.shelf.eager = claim.send
        return claim

    def _follow(self) -> None:
        """All that was asked for has come: have the server go on, it need not wait until we ask again."""
        while not self._closing.is_set():
            rooms = [claim.room for claim in self._ahead if not claim.is_answered]
            coming = sum(rooms)
            room = self.shelf.wanted(coming) if len(rooms) < CLAIMS_AHEAD else 0
            claim = self._claim_ahead(room, coming)
            if claim is None:
                return
            claim.send(coming)
            if not claim.was_sent:
                return
            self._ahead.append(claim)

    def _claim_ahead(self, room: int, coming: int | None = None) -> Claim | None:
        """The next claim, ready to be sent; None where it has to go its ordinary way."""
        if not room or self._limited or tracing.tracer is not None or failpoints.are_armed():
            return None  # the last two are told of a claim, on that way
        memory = self._memories[""]
        claim = Claim(self.line, self.shelf, memory, room, self.take, self._follow)
        begins = memory.would_begin(coming)
        is_down = claim.put_down(self._call(claim.id, self._shared, room, begins), begins)
        return claim if is_down else None

    async def _feed(self) -> bool:
        """Claim for the queues without a limit, then for each that has one; True if any came back full."""
        full, had_none = False, self._ahead[0].had_none if self._ahead else self.shelf.in_hand == 0
        if self._shared:
            room = self._ahead[0].room if self._ahead else self.shelf.wanted()
            full = room > 0 and await self._claim(self._shared, room)
        for queue, limit in self._limited.items():
            room = min(limit - self.shelf.in_queue[queue], self.shelf.wanted())
            full |= room > 0 and await self._claim([queue], room)
        # What was given back while we asked we have not seen.
        if not had_none or self.shelf.in_hand:
            self._empty.clear()
        if self._empty == self._asked:
            self.found_nothing.set()
        else:
            self.found_nothing.clear()
        return full

    async def _claim(self, queues: Sequence[str], room: int) -> bool:
        """Claim once; True if all came that there was room for, or as much as one claim may bring."""
        name = "" if queues is self._shared else queues[0]
        memory = self._memories[name]
        span = None if tracing.tracer is None else tracing.claiming(queues)
        if not self._ahead:
            self._ahead.append(Claim(self.line, self.shelf, memory, room, self.take, self._follow))
        claim = self._ahead[0]
        call = claim.call
        if call is None:
            claim.begins = memory.begins()
            claim.stepped_over = bool(claim.begins)
            call = self._call(claim.id, queues, room, claim.begins, span)
        try:
            rows = await self.outage.outlast(lambda: claim.ask(call), refusals=True)
        finally:
            self._ahead.remove(claim)
        if rows:
            self._empty.clear()
        elif not claim.stepped_over:
            self._empty.add(name)
        if claim.is_late and rows and not claim.rows:
            claim.sent = time.monotonic()
            rows = await self._renewed(rows, claim.id)
        if rows:
            if span is not None:
                tracing.quietly(span.end, len(rows))
            if not claim.rows:
                memory.took(in_line(rows), is_full=len(rows) >= room, begins=claim.begins)
                self.take(rows, claim.id, claim.sent)
        return len(rows) >= room or sum(map(len, map(_ARGS, rows))) >= HEAVY_CHARS

    def _call(
        self,
        claim: UUID,
        queues: Sequence[str],
        room: int,
        begins: Mapping[int, int],
        span: tracing.Claiming | None = None,
    ) -> Call[list[Claimed]]:
        config = self.shelf.config
        return calls.claim(
            queues, room, lease=config.lease_for, claim=claim, worker=self.worker, timeout=config.timeout,
            begins=begins, trace=None if span is None else span.trace, except_tasks=self.shelf.unfit.names(),
        )  # fmt: skip

    async def _renewed(self, rows: list[Row], claim: UUID) -> list[Row]:
        """Claimed before an outage, learnt of after it: beat once, and start only what is still ours."""
        leases = sorted(Lease(row[0], row[1], claim, self._lease, 0.0) for row in rows)
        beats = await self.outage.outlast(
            lambda: self.line.run(calls.heartbeat(leases, self.shelf.config.lease_for)), refusals=True
        )
        held = {beat.job_id for beat in beats if beat.answer in ("held", "busy")}
        return [row for row in rows if row[0] in held]

    def take(self, rows: list[Row], claim: UUID, sent: float) -> None:
        """Put each lease on the board, and then its job on the shelf."""
        reach("claimed")
        if counted():
            self.shelf.figures.claimed(rows, time.monotonic() - sent)
        self.shelf.go_on_measuring()
        here = self.shelf.at_work_on()
        hands = list(self._hands(rows, claim, sent))
        self.shelf.put(hands)
        if self._closing.is_set():
            for hand in hands:
                hand.stopping = "leaving"
        elif not here.keys().isdisjoint(map(_ID, rows)):
            self._look_for_others(hands, here)
        if self.shelf.left is not None:
            self.shelf.left -= len(rows)
        self.shelf.tell_runners(len(rows))

    def _look_for_others(self, hands: list[Hand], here: Mapping[int, Hand]) -> None:
        """What an attempt here works on may have been claimed: its lease is lost, and two never run here."""
        for hand in hands:
            if old := here.get(hand.job_id):
                hand.stopping = "still_running"
                if old.stopping is None:
                    old.stop("lost")

    def _hands(self, rows: list[Row], claim: UUID, sent: float) -> Iterator[Hand]:
        """Each claimed job with its lease on the board, ready for the shelf."""
        find, write, begin, claim_bytes = self.tasks.get, self.shelf.board.write, self.begin, claim.bytes
        told, usual = hears(logging.DEBUG), _until_stopped(self._timeout)
        # fmt: off
        for (id, token, attempt, attempts, crashes, task, queue, args, key, created_at, own, timeout,
             retry, _, _, trace, _, _, _, seed) in rows:
            lease_for = self._lease if own is None else self._own_lease(own)
            spec = find(task)
            if timeout is None and spec is not None:
                timeout = spec.timeout
            timeout_at = sent + (usual if timeout is None else _until_stopped(timeout.total_seconds()))
            job = Job(id, task, queue, attempt, attempts, crashes, token, key, created_at, begin, seed)
            slot, generation = write(id, token, claim_bytes, lease_for, sent)
            yield Hand(id, token, claim, lease_for, sent, job, spec, args, retry, timeout_at,
                       sent + lease_for, slot, generation, trace)
            if told:
                emit("lease_acquired", logging.DEBUG, job_id=id, token=token, worker=self.worker, task=task,
                     attempt=attempt)
        # fmt: on

    def _own_lease(self, lease: timedelta) -> float:
        """A job brings its own lease: of a short one the pacemaker has to know before it sleeps past it."""
        seconds = lease.total_seconds()
        if seconds < self._lease:
            self.hurry(seconds)
        return seconds


def _until_stopped(seconds: float) -> float:
    """A moment before the database's own deadline, so that our word on it is there before the watchdog's."""
    return seconds - min(END_EARLY_MAX, seconds * 0.05)
