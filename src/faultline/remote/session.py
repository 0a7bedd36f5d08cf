"""One stream to one server: what we say goes out with a number, and its answer comes back with it."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from faultline.errors import CannotConnect, ServerUnavailable
from faultline.remote.address import Address
from faultline.remote.channel import metadata, named, open_channel
from faultline.rpc.v1.worker_pb2 import Assignments, FromWorker, Goodbye, Hello, Notice, ToWorker, Welcome
from faultline.rpc.v1.worker_pb2_grpc import WorkersStub

WELCOME_SECONDS_MAX: Final = 10.0
"""How long a server may take to say welcome; another replica may be quicker."""

GOODBYE_SECONDS_MAX: Final = 1.0

Answer = Any
"""Assignments, Beaten or Settled, as it was asked."""


class Session:
    """A stream that was welcomed. Many may ask at once; whoever is unanswered when it breaks is told so."""

    def __init__(
        self, address: Address, target: str, heard: Callable[[Notice], None], broke: Callable[[], None]
    ) -> None:
        self.target = target
        self.broken: str | None = None
        """What ended it; nothing more can be said over it then."""
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

    async def open(self, hello: Hello) -> Welcome:
        """Say hello; raises CannotConnect, or what the server refuses us with: nothing else was sent."""
        try:
            async with asyncio.timeout(WELCOME_SECONDS_MAX):
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
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]
        return self.welcome

    async def call(self, method: str, request: Any, timeout: float) -> Any:
        """One call of its own, beside the stream."""
        return await getattr(self._stub, method)(request, metadata=self._metadata, timeout=timeout)

    async def ask(self, said: FromWorker) -> Answer:
        """Say something that is answered, and wait for the answer; ServerUnavailable when none came."""
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
        """Send what is to be said: a task of its own, because a write that is cancelled ends the stream."""
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):  # why, the reader learns
            while True:
                await self._stream.write(await self._outbox.get())

    async def _read(self) -> None:
        """Hand each answer to whoever waits for it, until the stream ends."""
        why = f"the server at {self.target} ended the stream"
        try:
            while (message := await self._stream.read()) is not grpc.aio.EOF:
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
        """Jobs that would not fit in one message come in parts."""
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
        if waiting is not None and not waiting.done():  # who was cancelled no longer waits
            waiting.set_result(message)

    def _break(self, why: str) -> None:
        self.broken = why
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ServerUnavailable(why))
        self._broke()

    @property
    def idle(self) -> bool:
        return not self._waiting

    async def close(self, *, goodbye: bool = False) -> None:
        """Hang up; with a word, which only tells people that this worker has left."""
        if goodbye and self.broken is None and self._tasks:
            self._outbox.put_nowait(FromWorker(goodbye=Goodbye()))
            await asyncio.wait(self._tasks[:1], timeout=GOODBYE_SECONDS_MAX)
        for part in self._tasks:
            part.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()
