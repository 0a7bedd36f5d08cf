"""The calls of an app to the database, and the hints to the workers after them."""

import logging
from collections.abc import Iterable
from typing import Final, TypeVar

from faultline.client import traced_send
from faultline.client.app_stores import AppStores, refuse_in_a_loop
from faultline.client.bulk import BulkEnqueue, due_queues, is_due
from faultline.client.gathering.app_lines import AppLines
from faultline.client.gathering.batches import Alone, Answer, answers
from faultline.client.hints import Hints
from faultline.client.unanswered import bulk_unknown_when_unanswered, unknown_when_unanswered
from faultline.errors import ServerUnavailable
from faultline.failpoints import failpoint
from faultline.job import NewJob
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import MadeJob
from faultline.telemetry import emit, tracing

T = TypeVar("T")

_log: Final = logging.getLogger("faultline.client")


class Sender:
    """One app's calls to the database: all of them in a plain and in an async form."""

    def __init__(self, stores: AppStores) -> None:
        self._stores = stores
        self._lines = AppLines(self._carry, self._acarry)
        self._hints = Hints(lambda hint: stores.plain().run(hint), self.arun)

    def run(self, call: Call[T], form: str, hint: Call[None] | None = None) -> T:
        """Make one call; `form` names the blocking method, for the error when it is called in a loop."""
        refuse_in_a_loop(form)
        return self._stores.plain().run(call, hint)

    async def arun(self, call: Call[T], hint: Call[None] | None = None) -> T:
        """Make one call for async code."""
        return await self._stores.of_this_loop().run(call, hint)

    def enqueue(self, new: NewJob) -> MadeJob:
        """Put one job in its queue, on a connection of our own."""
        return self._enqueue(new) if tracing.tracer is None else traced_send.send(new, self._enqueue)

    async def aenqueue(self, new: NewJob) -> MadeJob:
        """Put one job in its queue, on a connection of our own."""
        return await (
            self._aenqueue(new) if tracing.tracer is None else traced_send.asend(new, self._aenqueue)
        )

    def _enqueue(self, new: NewJob) -> MadeJob:
        line = self._lines.plain(new)
        if line is None:
            return self._send_alone(new)
        place = line.lead_or_join(new)
        if isinstance(place, int):
            try:
                return self._send_alone(new)
            finally:
                line.follow(place)
        answer = line.wait(place)
        if isinstance(answer, Alone):
            return self._send_alone(new, answer)
        return _told(new, answer)

    async def _aenqueue(self, new: NewJob) -> MadeJob:
        line = self._lines.of_this_loop(new)
        if line is None:
            return await self._asend_alone(new)
        turn = line.lead()
        if turn is not None:
            try:
                return await self._asend_alone(new)
            finally:
                line.follow(turn)
        answer = await line.join(new)
        if isinstance(answer, Alone):
            return await self._asend_alone(new, answer)
        return _told(new, answer)

    def _send_alone(self, new: NewJob, why: Alone = Alone.FIRST) -> MadeJob:
        call, hint = calls.enqueue_one(new), self._hints.with_job(new)
        failpoint("enqueue.sending")
        try:
            if why is Alone.AGAIN:
                made = self._stores.plain().run_again(call, hint)
            else:
                with unknown_when_unanswered(new.key is None):
                    made = self.run(call, "enqueue", hint)
        except ServerUnavailable:
            if new.key is None or why is Alone.AGAIN:
                raise
            # The key makes a second try safe.
            made = self._stores.plain().run_again(call, hint)
        failpoint("enqueue.sent")
        _tell_enqueued(new, made.id)
        if hint is None and is_due(new):
            self._hints.send(new.queue)
        return made

    async def _asend_alone(self, new: NewJob, why: Alone = Alone.FIRST) -> MadeJob:
        call, hint = calls.enqueue_one(new), self._hints.with_job(new)
        failpoint("enqueue.sending")
        try:
            if why is Alone.AGAIN:
                made = await self._stores.of_this_loop().run_again(call, hint)
            else:
                with unknown_when_unanswered(new.key is None):
                    made = await self.arun(call, hint)
        except ServerUnavailable:
            if new.key is None or why is Alone.AGAIN:
                raise
            made = await self._stores.of_this_loop().run_again(call, hint)
        failpoint("enqueue.sent")
        _tell_enqueued(new, made.id)
        if hint is None and is_due(new):
            await self._hints.asend(new.queue)
        return made

    def _carry(self, jobs: list[NewJob]) -> list[Answer]:
        """One call for the jobs of a line, and the answer to each."""
        call = calls.enqueue_each(jobs)
        hint, others = self._hints.with_jobs(due_queues(jobs))
        failpoint("enqueue.sending")
        made = self._stores.plain().run(call, hint)
        failpoint("enqueue.sent")
        self._hints.follow(others)
        return answers(made)

    async def _acarry(self, jobs: list[NewJob]) -> list[Answer]:
        """One call for the jobs of a line, and the answer to each."""
        call = calls.enqueue_each(jobs)
        hint, others = self._hints.with_jobs(due_queues(jobs))
        failpoint("enqueue.sending")
        made = await self._stores.of_this_loop().run(call, hint)
        failpoint("enqueue.sent")
        self._hints.afollow(others)
        return answers(made)

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[int]:
        """Put many jobs in their queues, all of them or none."""
        refuse_in_a_loop("enqueue_many")
        store, bulk = self._stores.plain(), BulkEnqueue(jobs)
        with (
            traced_send.bulk_in_span(bulk),
            bulk_unknown_when_unanswered(bulk),
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
        with traced_send.bulk_in_span(bulk), bulk_unknown_when_unanswered(bulk):
            async with store.transaction() as conn:
                async for ids in store.run_each(conn, bulk.calls()):
                    bulk.add(ids)
        _tell_many(bulk)
        for queue in bulk.due_queues:
            await self.ahint(queue)
        return bulk.ids

    def hint_with(self, new: NewJob) -> Call[None] | None:
        """The hint to send with a job, unless one was sent a moment ago: then another follows later."""
        return self._hints.with_job(new)

    def hint(self, queue: str) -> None:
        """Tell idle workers about a queue, now or a few milliseconds later."""
        self._hints.send(queue)

    async def ahint(self, queue: str) -> None:
        """Tell idle workers about a queue, now or a few milliseconds later."""
        await self._hints.asend(queue)

    def hint_soon(self, queue: str) -> None:
        """The same from a callback of the event loop, which cannot wait."""
        self._hints.send_soon(queue)

    def drain(self) -> None:
        """Wait until the jobs that wait for the call under way are answered."""
        self._lines.drain()

    async def settle_down(self) -> None:
        """Wait for the jobs of this loop that wait for the call under way, and for its pending hints."""
        await self._lines.adrain()
        await self._hints.settle_down()


def _told(new: NewJob, answer: MadeJob | Exception) -> MadeJob:
    if isinstance(answer, Exception):
        raise answer
    _tell_enqueued(new, answer.id)
    return answer


def _tell_enqueued(new: NewJob, job_id: int) -> None:
    emit("enqueued", logging.DEBUG, job_id=job_id, task=new.task, queue=new.queue)


def _tell_many(bulk: BulkEnqueue) -> None:
    for (queue, task), jobs in bulk.counts.items():
        emit("enqueued", logging.DEBUG, jobs=jobs, task=task, queue=queue)
