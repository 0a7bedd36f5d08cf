"""One stream to one server: each message goes out with a number, and its answer comes back with it."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from faultline.errors import CannotConnect, ServerUnavailable
from faultline.remote.channel import metadata, named, open_channel
from faultline.remote.server_address import ServerAddress
from faultline.rpc.v1.worker_pb2 import (
    Assignments,
    FromWorker,
    Goodbye,
    Hello,
    Notice,
    Ping,
    ToWorker,
    Welcome,
)
from faultline.rpc.v1.worker_pb2_grpc import WorkersStub

WELCOME_SECONDS_MAX: Final = 10.0
WELCOME_SECONDS_MIN: Final = 2.0

SILENCE_SECONDS_MIN: Final = 0.25
SILENCE_SECONDS_MAX: Final = 5.0

TURNS: Final = 5
"""Turns of the loop in which a pinged server has to answer: one may be used to send it, one to read."""


def welcome_seconds(lease: float) -> float:
    """The bound on the wait for a server's Welcome; another replica may be faster.

    >>> welcome_seconds(15), welcome_seconds(1), welcome_seconds(3600)
    (5.0, 2.0, 10.0)
    """
    return min(WELCOME_SECONDS_MAX, max(WELCOME_SECONDS_MIN, lease / 3))


def silence_seconds(lease: float) -> float:
    """The silence after which a server is pinged, and the bound on its answer.

    Together a third of a lease: a stream to a frozen replica is left while every held lease is still valid.

    >>> silence_seconds(15), silence_seconds(1), silence_seconds(3600)
    (2.5, 0.25, 5.0)
    """
    return min(SILENCE_SECONDS_MAX, max(SILENCE_SECONDS_MIN, lease / 6))


GOODBYE_SECONDS_MAX: Final = 1.0

Answer = Any
"""Assignments, Beaten or Settled, by the kind of the message."""


class WorkerStream:
    """A stream after its Welcome, for many askers at once; a break raises in all those without an answer."""

    def __init__(
        self, address: ServerAddress, target: str, heard: Callable[[Notice], None], broke: Callable[[], None]
    ) -> None:
        self.target = target
        self.broken: str | None = None
        """The error that ended it; nothing more can be sent over it then."""
        self.welcome = Welcome()
        self._metadata = metadata(address)
        self._channel = open_channel(address, target)
        self._stub: Any = WorkersStub(self._channel)  # type: ignore[no-untyped-call]
        self._heard = heard
        self._broke = broke
        self._stream: Any = None
        self._outbox: asyncio.Queue[FromWorker] = asyncio.Queue()
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._parts: dict[int, Assignments] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._heard_at = 0.0
        self._ended = asyncio.Event()

    async def open(self, hello: Hello) -> Welcome:
        """Send Hello; raises CannotConnect, or the server's refusal: nothing else was sent."""
        lease = hello.lease_ms / 1000
        try:
            async with asyncio.timeout(welcome_seconds(lease)):
                self._stream = self._stub.Session(metadata=self._metadata)
                await self._stream.write(FromWorker(hello=hello))
                first = await self._stream.read()
        except grpc.RpcError as fault:
            raise named(fault, self.target, sent=False) from fault
        except TimeoutError as silence:
            raise CannotConnect(f"the server at {self.target} did not say welcome in time") from silence
        if first is grpc.aio.EOF:
            raise CannotConnect(f"the server at {self.target} hung up before it said welcome")
        self.welcome = first.welcome
        parts = [self._read(), self._write()]
        if self.welcome.pings:
            parts.append(self._watch(silence_seconds(lease)))
        self._tasks = [asyncio.create_task(part) for part in parts]
        return self.welcome

    async def call(self, method: str, request: Any, timeout: float) -> Any:
        """One call of its own, beside the stream; it ends when the stream breaks."""
        calling = getattr(self._stub, method)(request, metadata=self._metadata, timeout=timeout)
        answered = asyncio.ensure_future(_answer_of(calling))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait({answered, ended}, return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                return answered.result()
            raise ServerUnavailable(self.broken or "the stream was closed")
        finally:
            ended.cancel()
            calling.cancel()
            answered.cancel()

    async def ask(self, said: FromWorker) -> Answer:
        """Send a message and wait for its answer; ServerUnavailable when none came."""
        if self.broken is not None:
            raise CannotConnect(self.broken)
        self._number += 1
        getattr(said, said.WhichOneof("message") or "").id = number = self._number
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._outbox.put_nowait(said)
            return await answer
        finally:
            self._waiting.pop(number, None)
            self._parts.pop(number, None)

    async def _write(self) -> None:
        """Send the waiting messages: a task of its own, because a write that is cancelled ends the stream."""
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):  # the reader learns the reason
            while True:
                await self._stream.write(await self._outbox.get())

    async def _watch(self, silence: float) -> None:
        """Ping a silent server, and leave one that does not answer.

        HTTP/2's own pings are answered by a library's threads and are allowed only each few seconds.
        """
        while True:
            await asyncio.sleep(silence)
            if time.monotonic() - self._heard_at < silence:
                continue
            asked_at = time.monotonic()
            self._outbox.put_nowait(FromWorker(ping=Ping()))
            if not await self._hears_since(asked_at, silence):
                self._break(f"the server at {self.target} has been silent for {2 * silence:g} s")
                self._stream.cancel()
                return

    async def _hears_since(self, asked_at: float, silence: float) -> bool:
        """Whether an answer comes in time, which is counted in turns of this loop and not by the clock.

        A loop that was blocked, for any time, has its ping unsent or the answer unread: that is one turn.
        """
        for _ in range(TURNS):
            await asyncio.sleep(silence / TURNS)
            if self._heard_at >= asked_at:
                return True
        return False

    async def _read(self) -> None:
        """Pass each answer to its asker, until the stream ends."""
        why = f"the server at {self.target} ended the stream"
        try:
            while (message := await self._stream.read()) is not grpc.aio.EOF:
                self._heard_at = time.monotonic()
                self._take(message)
            why += f": {await self._stream.details() or 'without a reason'}"
        except grpc.RpcError as fault:
            why = str(named(fault, self.target, sent=True))
        finally:
            self._break(why)

    def _take(self, message: ToWorker) -> None:
        match message.WhichOneof("message"):
            case "assignments":
                self._take_part(message.assignments)
            case "beaten":
                self._answer(message.beaten)
            case "settled":
                self._answer(message.settled)
            case "notice":
                self._heard(message.notice)

    def _take_part(self, part: Assignments) -> None:
        """Jobs too large for one message come in parts."""
        more = part.more
        if (whole := self._parts.pop(part.id, None)) is not None:
            whole.jobs.extend(part.jobs)
            part = whole
        if not more:
            self._answer(part)
        elif part.id in self._waiting:
            self._parts[part.id] = part

    def _answer(self, message: Answer) -> None:
        waiting = self._waiting.get(message.id)
        if waiting is not None and not waiting.done():  # a cancelled asker no longer waits
            waiting.set_result(message)

    def _break(self, why: str) -> None:
        if self.broken is not None:
            return
        self.broken = why
        self._ended.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ServerUnavailable(why))
        self._broke()

    @property
    def idle(self) -> bool:
        return not self._waiting

    async def close(self, *, goodbye: bool = False) -> None:
        """Close the stream; the reason is only shown to people."""
        if goodbye and self.broken is None and self._tasks:
            self._outbox.put_nowait(FromWorker(goodbye=Goodbye()))
            await asyncio.wait(self._tasks[:1], timeout=GOODBYE_SECONDS_MAX)
        for part in self._tasks:
            part.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()


async def _answer_of(calling: Any) -> Any:
    return await calling
