"""SessionReader: the incoming messages of one session, in their order; pings are answered ahead of them."""

import asyncio
from dataclasses import dataclass
from typing import Any

import grpc

from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.guard.call_guard import CallGuard, Context
from faultline.server.grpc.guard.message_bounds import LARGE_BYTES, LIST_BYTES_MAX, UnparsedMessage
from faultline.server.grpc.guard.message_reader import ReadSlot
from faultline.server.grpc.sessions.queue_scope import QueueScope
from faultline.server.grpc.sessions.session_writer import SessionWriter
from faultline.server.problems import MALFORMED, TOO_LARGE, TOO_SLOW, RequestRefused


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message of the worker, and the place that a large one takes while it is held."""

    message: worker_pb2.FromWorker
    place: ReadSlot | None

    def release(self) -> None:
        """Give the place back: the message was handled or dropped."""
        if self.place is not None:
            self.place.release()


class SessionReader:
    """Reads ahead of the messages that are handled, up to a number of them."""

    def __init__(
        self,
        guard: CallGuard,
        config: GrpcConfig,
        context: Context,
        writer: SessionWriter,
        rights: QueueScope,
    ) -> None:
        self._guard = guard
        self._config = config
        self._context = context
        self._writer = writer
        self._rights = rights
        self._queue: asyncio.Queue[IncomingMessage | None] = asyncio.Queue(config.unanswered_max)

    async def hello(self) -> worker_pb2.Hello:
        """The first message, which is a Hello and comes within its time."""
        first = await self._first()
        if first is grpc.aio.EOF:
            raise RequestRefused(MALFORMED, "a session begins with Hello")
        _check_length(first)
        message = first.parsed()
        if message.WhichOneof("message") != "hello":
            raise RequestRefused(MALFORMED, "a session begins with Hello")
        hello: worker_pb2.Hello = message.hello
        return hello

    async def run(self) -> None:
        """Read until the worker ends its stream."""
        while await self._read_one():
            pass
        await self._queue.put(None)

    async def next(self) -> IncomingMessage | None:
        """The next message to handle; None after the last."""
        return await self._queue.get()

    def drop_rest(self) -> None:
        """Give back the places of messages that will not be handled."""
        while not self._queue.empty():
            if (unheard := self._queue.get_nowait()) is not None:
                unheard.release()

    async def _first(self) -> Any:
        seconds = self._config.hello_seconds_max
        try:
            async with asyncio.timeout(seconds):
                return await self._context.read()
        except TimeoutError:
            raise RequestRefused(
                TOO_SLOW, f"no Hello came in {seconds:g} s; open a session to use it"
            ) from None

    async def _read_one(self) -> bool:
        """Read the next message; False after the last. A method of its own: a loop would hold the message."""
        came: UnparsedMessage | Any = await self._context.read()
        if came is grpc.aio.EOF:
            return False
        place = self._guard.place(self._rights.caller) if len(came) > LARGE_BYTES else None
        try:
            if place is not None:  # the next message is read once this one has its place
                await place.take()
            message = came.parsed()
            said = message.WhichOneof("message")
            if said != "results":
                _check_length(came)
            if said == "ping":
                self._pong(message.ping.id)
            else:
                await self._queue.put(IncomingMessage(message, place))
                place = None
            return True
        finally:
            if place is not None:
                place.release()

    def _pong(self, id: int) -> None:
        """Answer before the checks of key and database: a worker asks whether this process is awake."""
        self._writer.owe("ping", "pings")
        self._writer.send(worker_pb2.ToWorker(pong=worker_pb2.Pong(id=id)), "ping")


def _check_length(came: UnparsedMessage) -> None:
    """Only Results are long."""
    if len(came) > LIST_BYTES_MAX:
        raise RequestRefused(
            TOO_LARGE, f"all but Results have at most {LIST_BYTES_MAX} bytes; this message has {len(came)}"
        )
