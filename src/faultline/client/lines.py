"""Lines of jobs: one call is under way, and those that come meanwhile go with the next.

A caller that finds nothing under way leads: it sends its own job, as it would without a line. The jobs behind
it are carried by a task, or by a thread, of the line's own: so a caller that is cancelled takes no other with
it. A leader may wait for another transaction that creates its queue or holds its key: after a moment the line
goes on without it.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from faultline.client.gathering import Alone, Answer, answers_after, take
from faultline.job import NewJob
from faultline.store.connection_turns import on_behalf_of_server

OVERTAKE_SECONDS: Final = 0.1
"""How long the jobs behind a leader wait for it."""

IDLE_SECONDS: Final = 5.0
"""A line's thread ends after this time without work."""


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
                await self._carry_one(batch)
                self._sent = []
                # Callers that were answered run first: those that enqueue again go with the next batch.
                await asyncio.sleep(0)
        finally:
            self._end(self._carrier)

    def _end(self, carrier: asyncio.Task[None] | None) -> None:
        if carrier is not None and carrier is self._carrier:
            self._carrier = None
            self._busy = False
            while self._waiting:  # it was cancelled
                self._waiting.popleft().tell(Alone.FIRST)

    async def _carry_one(self, batch: list[AsyncWaiting]) -> None:
        jobs = [waiting.new for waiting in batch]
        told: Sequence[Answer] = []
        try:
            told = await self._carry(jobs)
        except BaseException as error:
            told = answers_after(error, jobs)
            if not isinstance(error, Exception):
                raise
        finally:
            for waiting, answer in zip(batch, told, strict=True):
                waiting.tell(answer)


class ThreadWaiting:
    """A job that waits in the line of plain code."""

    __slots__ = ("_answer", "_done", "is_left", "new")

    def __init__(self, new: NewJob) -> None:
        self.new = new
        self.is_left = False
        self._answer: Answer = Alone.FIRST
        self._done = threading.Lock()
        self._done.acquire()

    def tell(self, answer: Answer) -> None:
        self._answer = answer
        self._done.release()

    def wait(self, late: Callable[[], None]) -> Answer:
        """Wait for the answer; `late` is called when it takes long."""
        try:
            while not self._done.acquire(timeout=OVERTAKE_SECONDS):
                late()
        except BaseException:  # Ctrl-C
            self.is_left = True
            raise
        self._done.release()  # for others that wait until the line is drained
        return self._answer


class ThreadLine:
    """The line of plain code, for all threads of a process."""

    def __init__(self, carry: Callable[[list[NewJob]], list[Answer]]) -> None:
        self._carry = carry
        self._changed = threading.Condition()
        self._waiting: deque[ThreadWaiting] = deque()
        self._sent: list[ThreadWaiting] = []
        self._busy = False
        self._turn = 0
        self._has_turn = False
        self._carrier: threading.Thread | None = None

    def lead_or_join(self, new: NewJob) -> int | ThreadWaiting:
        """A turn if nothing is under way; else a place behind the call under way.

        With a turn the caller sends its job, and calls `follow` at the end.
        """
        with self._changed:
            if not self._busy:
                self._busy = True
                self._turn += 1
                return self._turn
            waiting = ThreadWaiting(new)
            self._waiting.append(waiting)
            return waiting

    def wait(self, waiting: ThreadWaiting) -> Answer:
        """Wait for the call that carries this job."""
        turn = self._turn
        return waiting.wait(lambda: self.follow(turn))

    def follow(self, turn: int) -> None:
        """The leader of this turn has ended, or waits: let the line's thread send what came meanwhile."""
        with self._changed:
            if turn != self._turn or self._has_turn:
                return  # it was overtaken
            self._turn += 1
            if not self._waiting:
                self._busy = False
                return
            self._has_turn = True
            if self._carrier is not None:
                self._changed.notify()
                return
            self._carrier = threading.Thread(target=self._run, name="faultline-enqueue", daemon=True)
            try:
                self._carrier.start()
            except RuntimeError:  # the interpreter is shutting down: no new thread
                self._carrier = None
                self._release()

    @property
    def has_waiting(self) -> bool:
        """Whether jobs wait, or are sent for those who do."""
        return bool(self._sent or self._waiting)

    def drain(self) -> None:
        """Wait until the jobs that wait now are answered."""
        with self._changed:
            pending = [*self._sent, *self._waiting]
        for waiting in pending:
            if not waiting.is_left:
                self.wait(waiting)

    def _release(self) -> None:
        """Nothing is under way any more, and each waiting caller sends by itself."""
        self._busy = self._has_turn = False
        while self._waiting:
            self._waiting.popleft().tell(Alone.FIRST)

    def _run(self) -> None:
        try:
            while self._wait_for_turn():
                self._carry_all()
        except BaseException:
            with self._changed:
                self._carrier = None
                self._release()
            raise

    def _wait_for_turn(self) -> bool:
        with self._changed:
            if not self._has_turn:
                self._changed.wait(IDLE_SECONDS)
            if not self._has_turn:
                self._carrier = None  # under the lock: the next turn finds that it has to start a thread
            return self._has_turn

    def _carry_all(self) -> None:
        while batch := self._next():
            jobs = [waiting.new for waiting in batch]
            told: Sequence[Answer] = []
            try:
                told = self._carry(jobs)
            except BaseException as error:
                told = answers_after(error, jobs)
                if not isinstance(error, Exception):
                    raise
            finally:
                for waiting, answer in zip(batch, told, strict=True):
                    waiting.tell(answer)

    def _next(self) -> list[ThreadWaiting]:
        with self._changed:
            self._sent = batch = take(self._waiting)
            if not batch:
                self._busy = self._has_turn = False
            return batch
