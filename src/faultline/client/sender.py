"""The calls of an app to the database, and the hints to the workers after them."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import psycopg

from faultline.bounds import counted
from faultline.client import traced_send
from faultline.client.app_stores import AppStores, refuse_in_a_loop
from faultline.client.bulk import BulkEnqueue, is_due
from faultline.client.wakeups import DelayedWakeups, WakeupSender
from faultline.errors import DatabaseError, OutcomeUnknown, ServerUnavailable
from faultline.failpoints import failpoint
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.call import Call
from faultline.telemetry import emit, tracing

T = TypeVar("T")

_log: Final = logging.getLogger("faultline.client")


class Sender:
    """One app's calls to the database: all of them in a plain and in an async form."""

    def __init__(self, stores: AppStores) -> None:
        self._stores = stores
        self._hints = WakeupSender()
        self._later = DelayedWakeups(self._send_late)
        self._on_their_way: set[asyncio.Task[None]] = set()  # a loop keeps only weak references

    def run(self, call: Call[T], form: str, hint: Call[None] | None = None) -> T:
        """Make one call; `form` names the blocking method, for the error when it is called in a loop."""
        refuse_in_a_loop(form)
        return self._stores.plain().run(call, hint)

    async def arun(self, call: Call[T], hint: Call[None] | None = None) -> T:
        """Make one call for async code."""
        return await self._stores.of_this_loop().run(call, hint)

    def enqueue(self, new: NewJob) -> int:
        """Put one job in its queue, on a connection of our own."""
        return self._enqueue(new) if tracing.tracer is None else traced_send.send(new, self._enqueue)

    async def aenqueue(self, new: NewJob) -> int:
        """Put one job in its queue, on a connection of our own."""
        return await (
            self._aenqueue(new) if tracing.tracer is None else traced_send.asend(new, self._aenqueue)
        )

    def _enqueue(self, new: NewJob) -> int:
        call, hint = calls.enqueue(new), self.hint_with(new)
        failpoint("enqueue.sending")
        try:
            with unknown_when_unanswered(new.key is None):
                job_id = self.run(call, "enqueue", hint)
        except ServerUnavailable:
            if new.key is None:
                raise
            # The key makes a second try safe.
            job_id = self._stores.plain().run_again(call, hint)
        failpoint("enqueue.sent")
        _tell_enqueued(new, job_id)
        if hint is None and is_due(new):
            self.hint(new.queue)
        return job_id

    async def _aenqueue(self, new: NewJob) -> int:
        call, hint = calls.enqueue(new), self.hint_with(new)
        failpoint("enqueue.sending")
        try:
            with unknown_when_unanswered(new.key is None):
                job_id = await self.arun(call, hint)
        except ServerUnavailable:
            if new.key is None:
                raise
            job_id = await self._stores.of_this_loop().run_again(call, hint)
        failpoint("enqueue.sent")
        _tell_enqueued(new, job_id)
        if hint is None and is_due(new):
            await self.ahint(new.queue)
        return job_id

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs in their queues, all of them or none."""
        refuse_in_a_loop("enqueue_many")
        store, bulk = self._stores.plain(), BulkEnqueue(jobs)
        with (
            traced_send.bulk_in_span(bulk),
            _bulk_unknown_when_unanswered(bulk),
            store.transaction() as conn,
        ):
            for ids in store.run_each(conn, bulk.calls()):
                bulk.add(ids)
        _tell_many(bulk)
        for queue in bulk.due_queues:
            self.hint(queue)
        return bulk.ids

    async def aenqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs in their queues, all of them or none."""
        store, bulk = self._stores.of_this_loop(), BulkEnqueue(jobs)
        with traced_send.bulk_in_span(bulk), _bulk_unknown_when_unanswered(bulk):
            async with store.transaction() as conn:
                async for ids in store.run_each(conn, bulk.calls()):
                    bulk.add(ids)
        _tell_many(bulk)
        for queue in bulk.due_queues:
            await self.ahint(queue)
        return bulk.ids

    def hint_with(self, new: NewJob) -> Call[None] | None:
        """The hint to send with a job, unless one was sent a moment ago: then another follows later."""
        return calls.wake(new.queue) if is_due(new) and self._hints.leads(new.queue) else None

    def hint(self, queue: str) -> None:
        """Tell idle workers about a queue, now or a few milliseconds later."""
        wait = self._hints.ask(queue)
        if wait == 0.0:
            self._send(queue)
        elif wait is not None:
            self._later.add(queue, wait)

    async def ahint(self, queue: str) -> None:
        """Tell idle workers about a queue, now or a few milliseconds later."""
        wait = self._hints.ask(queue)
        if wait == 0.0:
            await self._asend(queue)
        elif wait is not None:
            coming = asyncio.create_task(self._asend_late(queue, wait))
            self._on_their_way.add(coming)
            coming.add_done_callback(self._on_their_way.discard)

    def hint_soon(self, queue: str) -> None:
        """The same from a callback of the event loop, which cannot wait."""
        coming = asyncio.get_running_loop().create_task(self.ahint(queue))
        self._on_their_way.add(coming)
        coming.add_done_callback(self._on_their_way.discard)

    def _send(self, queue: str) -> None:
        with _only_a_hint(queue):
            self._stores.plain().run(calls.wake(queue))

    async def _asend(self, queue: str) -> None:
        with _only_a_hint(queue):
            await self.arun(calls.wake(queue))

    def _send_late(self, queue: str) -> None:
        self._hints.sending(queue)
        self._send(queue)

    async def _asend_late(self, queue: str, wait: float) -> None:
        try:
            await asyncio.sleep(wait)
        finally:
            self._hints.sending(queue)
        await self._asend(queue)

    async def settle_down(self) -> None:
        """Wait for the pending hints of this loop."""
        loop = asyncio.get_running_loop()
        ours = [task for task in self._on_their_way if task.get_loop() is loop]
        await asyncio.gather(*ours, return_exceptions=True)


@contextmanager
def _only_a_hint(queue: str) -> Iterator[None]:
    """Send the hint, and ignore its failure: the job is committed, and a poll finds it."""
    try:
        yield
    except (DatabaseError, psycopg.Error) as error:
        _log.debug("no wake-up was sent for queue %s: %s", queue, error)


@contextmanager
def unknown_when_unanswered(matters: bool) -> Iterator[None]:
    """Raise OutcomeUnknown when the reply to a write was lost and no row could tell."""
    try:
        yield
    except ServerUnavailable as error:
        if matters and _reply_was_lost(error):
            raise OutcomeUnknown(
                "the connection broke before the database answered: the job may have been enqueued, or not. "
                "Look before you enqueue it again, or give it a key, which makes repeating safe"
            ) from error
        raise


@contextmanager
def _bulk_unknown_when_unanswered(bulk: BulkEnqueue) -> Iterator[None]:
    try:
        yield
    except ServerUnavailable as error:
        if bulk.all_sent and not bulk.repeatable and _reply_was_lost(error):
            raise OutcomeUnknown(
                f"the connection broke during the commit of {counted(len(bulk.ids), 'job')}: it took place "
                "whole, or not at all. Look before you repeat it, or give each a key, which makes that safe"
            ) from error
        raise


def _reply_was_lost(error: ServerUnavailable) -> bool:
    # Class 53 (no room, disk full) is an answer: the statement was refused, and nothing was written.
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and not (cause.sqlstate or "").startswith("53")


def _tell_enqueued(new: NewJob, job_id: int) -> None:
    emit("enqueued", logging.DEBUG, job_id=job_id, task=new.task, queue=new.queue)


def _tell_many(bulk: BulkEnqueue) -> None:
    for (queue, task), jobs in bulk.counts.items():
        emit("enqueued", logging.DEBUG, jobs=jobs, task=task, queue=queue)
