"""Submits that arrive together go to the database together: one call, one commit, an answer each after it.

While one call is under way the next jobs gather. So a lone submit does not wait, and a crowd of them
shares the price of a commit.
"""

import asyncio
import logging
from collections import deque
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from faultline.client.batch_sizes import SUBMITTED_JOBS_MAX
from faultline.client.bulk import is_due
from faultline.client.gathering.batches import take
from faultline.client.sender import Sender
from faultline.client.unanswered import unknown_when_unanswered
from faultline.errors import InputError, KeyConflict, ServerUnavailable
from faultline.job import NewJob
from faultline.server.problems import OVERLOADED, RequestRefused
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.connection_turns import name_of_turn, on_behalf_of_server
from faultline.store.pool import AsyncStore
from faultline.telemetry import emit

Made = tuple[int, bool]
"""The id of the job, and whether it is new: a key may name an older one."""

CALLS_AT_ONCE: Final = 8
"""Of the server's connections, those that submits may take."""

KEYED_AT_ONCE: Final = 4
"""An open transaction may hold a key. Keyed jobs wait one by one, and only this many of them."""

KEYED_AT_ONCE_PER_CALLER: Final = 2

TOO_LONG: Final = "others wait for the database, and its turn did not come; nothing was stored"


class Waiting(NamedTuple):
    """A job, and the answer that its client waits for."""

    new: NewJob
    answer: asyncio.Future[Made]

    @property
    def is_left(self) -> bool:
        """Whether its client has gone."""
        return self.answer.done()


class Batcher:
    """Takes jobs one at a time and sends them in batches; jobs of one kind never delay or fail another kind.

    Jobs of a kind share all their options but the trace. Each kind has one call of its own under way, so a
    queue that is locked delays no other queue.
    """

    def __init__(
        self, store: AsyncStore, sender: Sender, waiting_max: int, seconds_max: float = 30.0
    ) -> None:
        self._store = store
        self._sender = sender
        self._kinds: dict[Any, deque[Waiting]] = {}
        self._waiting = 0
        self._waiting_max = waiting_max
        self._seconds_max = seconds_max
        self._carriers: set[asyncio.Task[None]] = set()
        self._calls = asyncio.Semaphore(CALLS_AT_ONCE)
        self._keyed = asyncio.Semaphore(KEYED_AT_ONCE)
        self._of_key = _Turns(1)
        self._of_caller = _Turns(KEYED_AT_ONCE_PER_CALLER)

    @property
    def is_full(self) -> bool:
        """Whether the line is so long that another job would wait for long."""
        return self._waiting >= self._waiting_max

    async def add(self, new: NewJob) -> Made:
        """Enqueue a job; the answer comes after its commit."""
        if new.key is not None:
            return await self._add_keyed(new)
        made: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        kind = calls.kind_of(new)
        waiting = self._kinds.get(kind)
        if waiting is None:
            waiting = self._kinds[kind] = deque()
            carrier = asyncio.create_task(self._carry_kind(kind, waiting), context=on_behalf_of_server())
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)
        waiting.append(Waiting(new, made))
        self._waiting += 1
        return await made

    async def _add_keyed(self, new: NewJob) -> Made:
        """Past the calls of the same key and the caller's own share: one held key takes one place at most."""
        turns = (self._of_key[new.queue, new.key], self._of_caller[name_of_turn()], self._keyed)
        async with AsyncExitStack() as taken:
            try:
                async with asyncio.timeout(self._seconds_max):
                    for turn in turns:
                        await turn.acquire()
                        taken.callback(turn.release)
            except TimeoutError:
                raise RequestRefused(OVERLOADED, TOO_LONG, 1) from None
            return await self._carry_keyed(new)

    async def _carry_kind(self, kind: Any, waiting: deque[Waiting]) -> None:
        """Send the jobs of one kind for as long as there are any."""
        while waiting:
            if not await self._has(self._calls):
                while late := self._taken(waiting):
                    for _, answer in late:
                        _fail(answer, RequestRefused(OVERLOADED, TOO_LONG, 1))
                continue
            try:
                if batch := self._taken(waiting):
                    await self._carry(batch)
            finally:
                self._calls.release()
        del self._kinds[kind]  # no await since the check: no job can have joined

    async def _has(self, turn: asyncio.Semaphore) -> bool:
        """Wait for a turn, within the time that a client may wait; nothing was sent before it comes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds_max):
                return await turn.acquire()
        return False

    def _taken(self, waiting: deque[Waiting]) -> list[Waiting]:
        before = len(waiting)
        batch = take(waiting, SUBMITTED_JOBS_MAX)
        self._waiting -= before - len(waiting)
        return batch

    async def _carry(self, batch: list[Waiting]) -> None:
        """One call for all; when the database refuses it, each job gets a call of its own."""
        try:
            made = await self._send([new for new, _ in batch])
        except Exception as error:
            # Only a refusal proves that nothing was written: after any other error nothing is sent again.
            if len(batch) > 1 and isinstance(error, InputError | KeyConflict):
                for one in batch:
                    await self._carry([one])
            else:
                for _, answer in batch:
                    _fail(answer, error)
            return
        for one, one_made in zip(batch, made, strict=True):
            if one_made is None:
                await self._carry([one])
            elif not one.answer.done():
                one.answer.set_result(one_made)

    async def _send(self, jobs: list[NewJob]) -> list[Made | None]:
        """The answers of one call for all; none for a job that was left out of it."""
        first = jobs[0]
        hint = self._sender.hint_with(first)
        with unknown_when_unanswered(first.key is None):
            async with asyncio.timeout(self._seconds_max):
                made = await self._run(jobs, hint)
        if hint is None and is_due(first):
            await self._sender.ahint(first.queue)
        if new := sum([one is not None and one[1] for one in made]):
            emit("enqueued", logging.DEBUG, jobs=new, task=first.task, queue=first.queue)
        return made

    async def _run(self, jobs: list[NewJob], hint: Call[None] | None) -> list[Made | None]:
        if len({new.trace for new in jobs}) == 1:
            many = calls.telling_which_are_new(calls.enqueue_many(jobs))
            return [*await self._store.run(many, hint)]
        rows = await self._store.run(calls.enqueue_each(jobs), hint)
        return [None if row.id is None else (row.id, row.is_new) for row in rows]

    async def _carry_keyed(self, new: NewJob) -> Made:
        try:
            (made,) = await self._send([new])
        except ServerUnavailable:
            (made,) = await self._send([new])  # the key makes a second try harmless
        assert made is not None, "only jobs of several traces may be left out"
        return made


class _Turns(WeakValueDictionary[Any, asyncio.Semaphore]):
    """A semaphore for each name, for as long as a call holds it or waits for it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __getitem__(self, name: Any) -> asyncio.Semaphore:
        found = self.get(name)
        if found is None:
            found = self[name] = asyncio.Semaphore(self._most)
        return found


def _fail(answer: asyncio.Future[Made], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # the client may have gone; without this the loop logs a lost exception
