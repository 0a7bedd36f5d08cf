"""Assigner: an Ask in, claimed jobs out; jobs that cannot be delivered are given back."""

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
from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.sessions.job_messages import Granted, granted
from faultline.server.grpc.sessions.wait_queue import Waiter, WaitQueue
from faultline.server.throttling.payload_budget import (
    AROUND_JOB_BYTES,
    CLAIM_BYTES_MAX,
    PayloadBudget,
    PayloadShare,
)
from faultline.store import calls
from faultline.store.call import Call, Row
from faultline.store.pool import AsyncStore
from faultline.store.readers import in_line
from faultline.store.rows import AT

log = logging.getLogger("faultline.remote")

UNDELIVERED: Final = "the worker's connection was gone before it was delivered"
RELEASES_AT_ONCE: Final = 4

ROOM_SECONDS: Final = 1.0
"""The wait for room of an Ask that does not wait for work."""

# A worker's clock may be a little slower than ours: the wait told is shorter than ours, never longer.
DRIFT: Final = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """The checked content of one Ask."""

    queues: Sequence[str]
    room: int
    lease: timedelta
    timeout: timedelta
    claim: UUID
    worker: int | None
    arrived: float
    """The arrival of the Ask, by our monotonic clock."""
    wait: float
    again: bool = False
    begins: Mapping[int, int] = field(default_factory=dict)
    allowed: frozenset[str] | None = None
    """The queues of its key; None for all."""
    trace: str | None = None
    """The span of the Ask, where the worker traces."""
    except_tasks: Sequence[str] = ()
    """Tasks whose jobs are left to other workers."""
    whose: str = ""
    """The key of the Ask: the bytes on their way are counted by it."""


class Assigner:
    """Claims jobs for an Ask, at once or when work comes."""

    def __init__(self, store: AsyncStore, wait_queue: WaitQueue, payload_budget: PayloadBudget) -> None:
        self.payload_budget = payload_budget
        self._store = store
        self._wait_queue = wait_queue
        self._handing_back = asyncio.Semaphore(RELEASES_AT_ONCE)

    async def assign(self, request: JobRequest, waiter: Waiter) -> Granted:
        """Claim until there is work, the wait is over, or the waiter was released."""
        until = request.arrived + request.wait
        with self._wait_queue.present(waiter, request.whose):
            while True:
                before = self._wait_queue.heard(waiter)
                # Taken before the claim is sent: the lease cannot begin any earlier.
                waited_ms = int((time.monotonic() - request.arrived) * 1000 * DRIFT)
                load = await self.payload_budget.room(
                    request.whose, max(until, time.monotonic() + ROOM_SECONDS)
                )
                if load is None:  # a key with a full budget is told that there is nothing now
                    self._wait_queue.pass_on(waiter)
                    return granted([], request.claim.bytes, request.lease, request.timeout, waited_ms)
                rows = await self._claimed(request, load)
                found = bool(rows) or request.again
                if found:
                    self._wait_queue.pass_on(waiter)
                else:
                    self._wait_queue.pass_on_unused(waiter)
                if found or not await self._shall_look_again(waiter, before, until):
                    return granted(rows, request.claim.bytes, request.lease, request.timeout, waited_ms, load)

    async def _claimed(self, request: JobRequest, load: PayloadShare) -> list[Row]:
        """The rows of a claim; the room shrinks to their size."""
        try:
            rows = _allowed(request, await self._store.run(_claim(request)))
        except BaseException:
            load.release()
            raise
        load.shrink(sum([len(row[AT.args]) for row in rows]) + AROUND_JOB_BYTES * len(rows) if rows else 0)
        return rows

    async def _shall_look_again(self, waiter: Waiter, before: int, until: float) -> bool:
        """Wait for work; False when the wait is over, or the waiter was released."""
        left = until - time.monotonic()
        if waiter.is_over() or left <= 0:
            return False
        if self._wait_queue.heard(waiter) != before:  # a wake-up came during the claim
            return True
        await self._wait_queue.wait(waiter, left)
        if waiter.is_over() and waiter.woken:
            self._wait_queue.pass_on(waiter)
        return waiter.woken and not waiter.is_over()

    async def hand_back(self, jobs: Sequence[worker_pb2.Job]) -> None:
        """Give undelivered jobs back at once; a failure here leaves them to the end of their lease."""
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


def _claim(request: JobRequest) -> Call[list[Row]]:
    claim = calls.claim(
        request.queues, request.room, lease=request.lease, claim=request.claim, worker=request.worker,
        timeout=request.timeout, resend=request.again, begins=request.begins, trace=request.trace,
        bytes_max=CLAIM_BYTES_MAX,
        except_tasks=request.except_tasks,
    )  # fmt: skip
    return Call(claim.name, claim.args, read=in_line, raw_moments=True)


def _allowed(request: JobRequest, rows: list[Row]) -> list[Row]:
    return rows if request.allowed is None else [row for row in rows if row[AT.queue] in request.allowed]
