"""Assigning: an Ask in, claimed jobs out; and back they go when they cannot be delivered."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

import psycopg

from faultline.errors import FaultlineError
from faultline.lease import Lease
from faultline.remote.serving.bell import Bell, Waiter
from faultline.remote.serving.cargo import AROUND_JOB_BYTES, CLAIM_BYTES_MAX, Cargo, Load
from faultline.remote.serving.granting import Granted, granted
from faultline.rpc.v1 import worker_pb2
from faultline.store import calls
from faultline.store.call import Call, Row
from faultline.store.rows import Claimed, in_line
from faultline.store.run import AsyncStore

log = logging.getLogger("faultline.remote")

UNDELIVERED: Final = "the worker's connection was gone before it was delivered"
RELEASES_AT_ONCE: Final = 4
QUEUE: Final = Claimed._fields.index("queue")
ARGS: Final = Claimed._fields.index("args")

ROOM_SECONDS: Final = 1.0
"""How long an Ask that does not wait for work waits for room all the same."""

# A worker's clock may run a little slower than ours: what we say we waited is told shorter, never longer.
DRIFT: Final = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one Ask comes to, once it was checked."""

    queues: Sequence[str]
    room: int
    lease: timedelta
    timeout: timedelta
    claim: UUID
    worker: int | None
    arrived: float
    """The moment the Ask came in, by our monotonic clock."""
    wait: float
    again: bool = False
    begins: Mapping[int, int] = field(default_factory=dict)
    allowed: frozenset[str] | None = None
    """The queues its key is for; None for all."""
    trace: str | None = None
    """The span that asks, where the worker traces."""
    except_tasks: Sequence[str] = ()
    """Tasks whose jobs are left to other workers."""
    whose: str = ""
    """The key that asks: what is on its way is counted by it."""


class Assigner:
    """Claims for whoever asks, at once or when work comes."""

    def __init__(self, store: AsyncStore, bell: Bell, cargo: Cargo) -> None:
        self.cargo = cargo
        self._store = store
        self._bell = bell
        self._handing_back = asyncio.Semaphore(RELEASES_AT_ONCE)

    async def assign(self, wish: Wish, waiter: Waiter) -> Granted:
        """Look until there is work, the wait is over, or the waiter was let go."""
        until = wish.arrived + wish.wait
        with self._bell.present(waiter):
            while True:
                before = self._bell.heard(waiter)
                # Before the claim is sent: the lease cannot have begun any earlier.
                waited_ms = int((time.monotonic() - wish.arrived) * 1000 * DRIFT)
                load = await self.cargo.room(wish.whose, max(until, time.monotonic() + ROOM_SECONDS))
                if load is None:  # who has so much on its way is told that there is nothing now
                    self._bell.pass_on(waiter)
                    return granted([], wish.claim.bytes, wish.lease, wish.timeout, waited_ms)
                rows = await self._claimed(wish, load)
                found = bool(rows) or wish.again
                if found:
                    self._bell.pass_on(waiter)
                else:
                    self._bell.pass_on_excepted(waiter)
                if found or not await self._shall_look_again(waiter, before, until):
                    return granted(rows, wish.claim.bytes, wish.lease, wish.timeout, waited_ms, load)

    async def _claimed(self, wish: Wish, load: Load) -> list[Row]:
        """The rows of a claim; of the room for it, what they weigh is kept."""
        try:
            rows = _allowed(wish, await self._store.run(_claim(wish)))
        except BaseException:
            load.release()
            raise
        load.shrink(sum([len(row[ARGS]) for row in rows]) + AROUND_JOB_BYTES * len(rows) if rows else 0)
        return rows

    async def _shall_look_again(self, waiter: Waiter, before: int, until: float) -> bool:
        """Wait for work; False when the wait is over, or the waiter was let go."""
        left = until - time.monotonic()
        if waiter.is_over() or left <= 0:
            return False
        if self._bell.heard(waiter) != before:  # it rang while we looked
            return True
        await self._bell.wait(waiter, left)
        if waiter.is_over() and waiter.rung:
            self._bell.pass_on(waiter)
        return waiter.rung and not waiter.is_over()

    async def hand_back(self, jobs: Sequence[worker_pb2.Job]) -> None:
        """Give undelivered jobs back at once; what cannot be given back comes by its lease's end."""
        async with self._handing_back:
            for job in jobs:
                lease = Lease(job.id, job.token, UUID(bytes=job.claim), 0.0, 0.0)
                try:
                    await self._store.run(calls.release(lease, UNDELIVERED))
                except (FaultlineError, psycopg.Error, TimeoutError) as error:
                    log.info("job %d comes back by the end of its lease: %s", job.id, error)
        for queue in {job.queue for job in jobs}:
            with suppress(FaultlineError, psycopg.Error, TimeoutError):
                await self._store.run(calls.wake(queue))


def _claim(wish: Wish) -> Call[list[Row]]:
    claim = calls.claim(
        wish.queues, wish.room, lease=wish.lease, claim=wish.claim, worker=wish.worker, timeout=wish.timeout,
        again=wish.again, begins=wish.begins, trace=wish.trace, bytes_max=CLAIM_BYTES_MAX,
        except_tasks=wish.except_tasks,
    )  # fmt: skip
    return Call(claim.name, claim.args, read=in_line, raw_moments=True)


def _allowed(wish: Wish, rows: list[Row]) -> list[Row]:
    return rows if wish.allowed is None else [row for row in rows if row[QUEUE] in wish.allowed]
