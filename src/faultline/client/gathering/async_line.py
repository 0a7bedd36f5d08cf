"""The line of an event loop: one call is under way, and the jobs that come meanwhile go with the next.

A caller that finds nothing under way leads: it sends its own job, as it would without a line. The jobs
behind it are carried by a task of the line's own: so a caller that is cancelled takes no other with it. A
leader may wait for another transaction that creates its queue or holds its key: after a moment the line goes
on without it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from faultline.client.gathering.batches import (
    OVERTAKE_SECONDS,
    Answer,
    Answering,
    send_alone,
    take,
)
from faultline.job import NewJob
from faultline.store.connection_turns import on_behalf_of_server


class AsyncWaiting:
    """A job that waits in the line of an event loop."""

    __slots__ = ("answer", "new")

    def __init__(self, new: NewJob, answer: asyncio.Future[Answer]) -> None:
        self.new = new
        self.answer = answer

    @property
    def is_left(self) -> bool:
        return self.answer.done()

    def tell(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class AsyncLine:
    """The line of one event loop. It holds no reference to the loop, which would keep both alive."""

    def __init__(self, carry: Callable[[list[NewJob]], Awaitable[list[Answer]]]) -> None:
        self._carry = carry
        self._waiting: deque[AsyncWaiting] = deque()
        self._sent: list[AsyncWaiting] = []
        self._busy = False
        self._turn = 0
        self._overtaking: asyncio.TimerHandle | None = None
        self._carrier: asyncio.Task[None] | None = None  # a loop keeps only weak references

    def lead(self) -> int | None:
        """A turn if nothing is under way. Then the caller sends its job, and calls `follow` at the end."""
        if self._busy:
            return None
        self._busy = True
        self._turn += 1
        return self._turn

    def follow(self, turn: int) -> None:
        """The leader of this turn has ended, or waits: send what came meanwhile."""
        if turn != self._turn or self._carrier is not None:
            return  # it was overtaken
        self._turn += 1
        if self._overtaking is not None:
            self._overtaking.cancel()
            self._overtaking = None
        if not self._waiting:
            self._busy = False
            return
        carrying = self._carry_all()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # the collector ended the caller, and there is no loop any more
            carrying.close()
            self._waiting.clear()
            self._busy = False
            return
        self._carrier = loop.create_task(carrying, context=on_behalf_of_server())
        self._carrier.add_done_callback(
            self._end
        )  # a task that is cancelled before it begins runs no line of it

    def join(self, new: NewJob) -> asyncio.Future[Answer]:
        """The answer of the call that will carry this job."""
        loop = asyncio.get_running_loop()
        waiting = AsyncWaiting(new, loop.create_future())
        self._waiting.append(waiting)
        if self._carrier is None and self._overtaking is None:
            self._overtaking = loop.call_later(OVERTAKE_SECONDS, self.follow, self._turn)
        return waiting.answer

    async def drain(self) -> None:
        """Wait until the jobs that wait now are answered."""
        if pending := [waiting.answer for waiting in (*self._sent, *self._waiting)]:
            await asyncio.wait(pending)

    async def _carry_all(self) -> None:
        try:
            while batch := take(self._waiting):
                self._sent = batch
                with Answering(batch) as call:
                    call.answer(await self._carry(call.jobs))
                self._sent = []
                # Callers that were answered run first: those that enqueue again go with the next batch.
                await asyncio.sleep(0)
        finally:
            self._end(self._carrier)

    def _end(self, carrier: asyncio.Task[None] | None) -> None:
        if carrier is not None and carrier is self._carrier:
            self._carrier = None
            self._busy = False
            send_alone(self._waiting)  # it was cancelled
