"""The line of plain code: one call is under way, and the jobs that come meanwhile go with the next.

As `async_line.py`, for all threads of a process; a thread of the line's own carries the jobs behind a leader.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from faultline.client.gathering.batches import (
    OVERTAKE_SECONDS,
    Alone,
    Answer,
    Answering,
    send_alone,
    take,
)
from faultline.job import NewJob

IDLE_SECONDS: Final = 5.0
"""A line's thread ends after this time without work."""


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
        send_alone(self._waiting)

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
            with Answering(batch) as call:
                call.answer(self._carry(call.jobs))

    def _next(self) -> list[ThreadWaiting]:
        with self._changed:
            self._sent = batch = take(self._waiting)
            if not batch:
                self._busy = self._has_turn = False
            return batch
