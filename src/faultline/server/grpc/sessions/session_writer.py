"""SessionWriter: the outgoing messages of one session. The unwritten ones are always known."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.guard.call_guard import CallGuard, Context
from faultline.server.grpc.sessions.job_messages import named
from faultline.server.grpc.sessions.worker_service import WorkerService
from faultline.server.problems import TOO_MANY, TOO_SLOW, RequestRefused
from faultline.server.throttling.payload_budget import PayloadShare, patience

HANG_UP_SECONDS: Final = 1.0
"""The status of a stream with a closed connection: no status can be sent while a message is under way."""


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to the worker, and the kind of message that it answers."""

    message: worker_pb2.ToWorker
    kind: str = ""
    load: PayloadShare | None = None
    """The room that is free again when the message is written or dropped."""

    @property
    def jobs(self) -> Sequence[worker_pb2.Job]:
        """The jobs that are given back if the message is never sent."""
        return self.message.assignments.jobs


class SessionWriter:
    """Writes in one task what many others send."""

    def __init__(
        self, service: WorkerService, guard: CallGuard, context: Context, spawn: Callable[..., Any]
    ) -> None:
        self._service = service
        self._guard = guard
        self._context = context
        self._spawn = spawn
        self.lease = timedelta(0)
        """The lease of the worker: jobs that are not read in a part of it are given back."""
        self._closed = False
        self._queue: asyncio.Queue[OutgoingMessage | Exception | None] = asyncio.Queue()
        self._unanswered: Counter[str] = Counter()
        self._wakes: set[str] = set()

    async def run(self) -> None:
        """Write until the end; an error that was handed in is raised."""
        while await self._write_one():
            pass

    def send(self, message: worker_pb2.ToWorker, kind: str = "", load: PayloadShare | None = None) -> None:
        """Have a message written; `kind` is what it answers."""
        going = OutgoingMessage(message, kind, load)
        if self._closed:
            self._undelivered(going)
        else:
            self._queue.put_nowait(going)

    def owe(self, kind: str, what: str) -> None:
        """Count one more message that wants an answer, or refuse it past the bound."""
        if self._unanswered[kind] >= self._service.config.unanswered_max:
            raise RequestRefused(TOO_MANY, f"{self._unanswered[kind]} {what} wait for their answer")
        self._unanswered[kind] += 1

    def owe_parts(self, kind: str, more: int) -> None:
        """Count the further messages of an answer in several parts."""
        self._unanswered[kind] += more

    def wake(self, queue: str) -> None:
        """Send a wake-up, one at a time for each queue: a slow reader gets one, not a thousand."""
        if queue not in self._wakes:
            self._wakes.add(queue)
            self.send(worker_pb2.ToWorker(notice=worker_pb2.Notice(wake=queue)), "wake")

    def fail(self, error: Exception) -> None:
        """End the session with this error, once the messages before it are written."""
        self._queue.put_nowait(error)

    def end(self) -> None:
        """End the session, once the messages before are written."""
        self._queue.put_nowait(None)

    def close(self) -> None:
        """Write no more; jobs that the worker was not sent are given back."""
        self._closed = True
        while not self._queue.empty():
            going = self._queue.get_nowait()
            if isinstance(going, OutgoingMessage):
                self._undelivered(going)

    async def _write_one(self) -> bool:
        """Write the next message; False when there is none to come.

        A method of its own: a loop would hold the last message, a mebibyte of jobs, until the next one.
        """
        going = await self._queue.get()
        if going is None:
            return False
        if isinstance(going, Exception):
            raise going
        try:
            async with self._patience(going):
                await self._context.write(going.message)
        except TimeoutError:
            self._undelivered(going)
            self.close()
            self._guard.connections.hang_up(self._context.peer())
            await asyncio.sleep(HANG_UP_SECONDS)
            raise RequestRefused(TOO_SLOW, "the jobs that were asked for are not being read") from None
        except BaseException:
            self._undelivered(going)
            raise
        self._written(going)
        return True

    def _written(self, going: OutgoingMessage) -> None:
        if going.load is not None:
            going.load.release()
        if going.kind == "wake":
            self._wakes.discard(going.message.notice.wake)
        elif going.kind:
            self._unanswered[going.kind] -= 1

    def _patience(self, going: OutgoingMessage) -> AbstractAsyncContextManager[Any]:
        seconds = patience(self.lease.total_seconds()) if going.jobs else None
        if going.load is None or seconds is None:
            return asyncio.timeout(seconds)
        return going.load.being_written(seconds)

    def _undelivered(self, going: OutgoingMessage) -> None:
        """Give back at once the jobs of a worker that has gone; the lease's end would come later."""
        if going.jobs:
            self._spawn(self._service.assigner.hand_back(named(going.jobs)))
        if going.load is not None:
            going.load.release()
