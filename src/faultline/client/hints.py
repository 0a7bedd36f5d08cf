"""The hints of one app to idle workers: with a job, behind it, or a few milliseconds later."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from faultline.client.bulk import is_due
from faultline.client.wakeups import DelayedWakeups, WakeupSender
from faultline.errors import DatabaseError
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.connection_turns import on_behalf_of_server

_log: Final = logging.getLogger("faultline.client")

GRACE_SECONDS: Final = 0.001
"""How long a late hint waits beyond its time: a job that is sent in between takes it along."""

Carry = Callable[[Call[None]], None]
AsyncCarry = Callable[[Call[None]], Awaitable[None]]


class Hints:
    """Sends the hints that are due; none of them fails a caller."""

    def __init__(self, carry: Carry, acarry: AsyncCarry) -> None:
        self._carry = carry
        self._acarry = acarry
        self._due = WakeupSender()
        self._later = DelayedWakeups(self._send_late)
        self._on_their_way: set[asyncio.Task[None]] = set()  # a loop keeps only weak references

    def with_job(self, new: NewJob) -> Call[None] | None:
        """The hint to send with a job, unless one was sent a moment ago: then another follows later."""
        return calls.wake(new.queue) if is_due(new) and self._due.leads(new.queue) else None

    def with_jobs(self, queues: Sequence[str]) -> tuple[Call[None] | None, list[str]]:
        """The hint to send with jobs of these queues, and the queues whose hint follows later."""
        leading = [queue for queue in queues if self._due.leads(queue)]
        others = [queue for queue in queues if queue not in leading]
        if not leading:
            return None, others
        return calls.wake(leading[0]) if len(leading) == 1 else calls.wake_each(leading), others

    def send(self, queue: str) -> None:
        """Tell idle workers about a queue, now or a few milliseconds later."""
        wait = self._due.ask(queue)
        if wait == 0.0:
            self._send(queue)
        elif wait is not None:
            self._later.add(queue, wait + GRACE_SECONDS)

    async def asend(self, queue: str) -> None:
        """Tell idle workers about a queue, now or a few milliseconds later."""
        wait = self._due.ask(queue)
        if wait == 0.0:
            await self._asend(queue)
        elif wait is not None:
            self._start(queue, wait + GRACE_SECONDS)

    def send_soon(self, queue: str) -> None:
        """The same from a callback of the event loop, which cannot wait."""
        self._keep(asyncio.get_running_loop().create_task(self.asend(queue)))

    def follow(self, queues: Sequence[str]) -> None:
        """Tell idle workers about these queues; the caller waits for none of it."""
        for queue in queues:
            if (wait := self._due.ask(queue)) is not None:
                self._later.add(queue, wait + GRACE_SECONDS)

    def afollow(self, queues: Sequence[str]) -> None:
        """Tell idle workers about these queues; the caller waits for none of it."""
        for queue in queues:
            if (wait := self._due.ask(queue)) is not None:
                self._start(queue, wait + GRACE_SECONDS)

    async def settle_down(self) -> None:
        """Wait for the pending hints of this loop."""
        loop = asyncio.get_running_loop()
        ours = [task for task in self._on_their_way if task.get_loop() is loop]
        await asyncio.gather(*ours, return_exceptions=True)

    def _send(self, queue: str) -> None:
        with _only_a_hint(queue):
            self._carry(calls.wake(queue))

    async def _asend(self, queue: str) -> None:
        with _only_a_hint(queue):
            await self._acarry(calls.wake(queue))

    def _start(self, queue: str, wait: float) -> None:
        self._keep(asyncio.create_task(self._asend_late(queue, wait), context=on_behalf_of_server()))

    def _keep(self, coming: "asyncio.Task[None]") -> None:
        self._on_their_way.add(coming)
        coming.add_done_callback(self._on_their_way.discard)

    def _send_late(self, queue: str) -> None:
        if self._due.sending(queue):
            self._send(queue)

    async def _asend_late(self, queue: str, wait: float) -> None:
        is_wanted = False
        try:
            await asyncio.sleep(wait)
        finally:
            is_wanted = self._due.sending(queue)
        if is_wanted:
            await self._asend(queue)


@contextmanager
def _only_a_hint(queue: str) -> Iterator[None]:
    """Send the hint, and ignore its failure: the job is committed, and a poll finds it."""
    try:
        yield
    except (DatabaseError, psycopg.Error) as error:
        _log.debug("no wake-up was sent for queue %s: %s", queue, error)
