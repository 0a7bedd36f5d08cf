"""MessageReader: a call's message is read once its caller is known, and large ones within a bound.

gRPC's library reads the message of a unary call before it calls the method: without a key, 100 calls on one
connection with messages that never end took 400 MB. So unary methods are registered as methods with a
stream of requests, which is the same on the wire, and read their one message themselves.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc

from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.guard.message_bounds import LARGE_BYTES, OTHERS, MessageBound, bounds, unparsed
from faultline.server.problems import MALFORMED, TOO_SLOW, RequestRefused

Context = grpc.aio.ServicerContext[Any, Any]

WRITES_ITSELF: Final = "writes_itself"


class ReadSlot:
    """Room for one message while it is read, and for a large one while it is held."""

    __slots__ = ("_held", "_receiving", "_wanted", "name")

    def __init__(self, receiving: "MessageReader", name: str, wanted: Sequence[asyncio.Semaphore]) -> None:
        self.name = name
        self._receiving: MessageReader | None = receiving
        self._wanted = wanted
        self._held: list[asyncio.Semaphore] = []

    async def take(self) -> None:
        """Wait for the place; the name's own share first: calls of one name never wait in the others' way."""
        for one in self._wanted:
            await one.acquire()
            self._held.append(one)

    def release(self) -> None:
        """Give it back, taken or not. Repeated calls do nothing."""
        while self._held:
            self._held.pop().release()
        if self._receiving is not None:
            self._receiving.left(self.name)
            self._receiving = None


class MessageReader:
    """Places for messages that are being read, in all and for each name; the next call waits for one.

    A message over LARGE_BYTES keeps its place until its call has ended: it stays in memory until then.
    """

    def __init__(self, most: int, per_name: int, seconds_max: float) -> None:
        self._all = asyncio.Semaphore(most)
        self._per_name = per_name
        self._of_name: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}
        self._seconds_max = seconds_max

    def place(self, name: str) -> ReadSlot:
        """A place for this name, still to be taken."""
        mine, users = self._of_name.setdefault(name, (asyncio.Semaphore(self._per_name), []))
        users.append(None)
        return ReadSlot(self, name, (mine, self._all))

    def left(self, name: str) -> None:
        """Give back a place of this name."""
        users = self._of_name[name][1]
        users.pop()
        if not users:
            del self._of_name[name]

    @asynccontextmanager
    async def message(self, context: Context, name: str, *, lasting: bool = False) -> AsyncIterator[Any]:
        """The one message of a unary call; a call that lasts drops it, and its place is free at once."""
        place = self.place(name)
        try:
            yield await self._read(context, place, lasting)
        finally:
            place.release()

    async def _read(self, context: Context, place: ReadSlot, lasting: bool) -> Any:
        try:
            async with asyncio.timeout(self._seconds_max):
                await place.take()
                message = await context.read()
        except TimeoutError:
            raise RequestRefused(TOO_SLOW, f"no message came in {self._seconds_max:g} s") from None
        if message is grpc.aio.EOF:
            raise RequestRefused(MALFORMED, "a call brings one message; this one brought none")
        if lasting or len(message) <= LARGE_BYTES:
            place.release()
        return message.parsed()


def writes_itself(method: Any) -> Any:
    """The writer of a unary method: it writes the one answer to the context, and knows when it was read."""
    setattr(method, WRITES_ITSELF, True)
    return method


class KeyFirst:
    """Registers a service with a server: its methods are called before their message is read."""

    def __init__(self, server: grpc.aio.Server, config: GrpcConfig) -> None:
        self._server = server
        self._bounds = bounds(config)

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Do nothing: the same methods are registered by their names as well."""

    def add_registered_method_handlers(self, service: str, methods: Mapping[str, Any]) -> None:
        """Register these methods; the unary ones read their message themselves."""
        named = {name: _unread(method, self._bounds.get(name, OTHERS)) for name, method in methods.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, named),))
        self._server.add_registered_method_handlers(service, named)


def _unread(method: Any, bound: MessageBound) -> Any:
    how = {
        "request_deserializer": unparsed(method.request_deserializer, bound),
        "response_serializer": method.response_serializer,
    }
    if method.request_streaming:
        return grpc.stream_stream_rpc_method_handler(method.stream_stream, **how)
    if getattr(method.unary_unary, WRITES_ITSELF, False):
        return grpc.stream_stream_rpc_method_handler(method.unary_unary, **how)
    if method.response_streaming:
        return grpc.stream_stream_rpc_method_handler(method.unary_stream, **how)
    return grpc.stream_unary_rpc_method_handler(method.unary_unary, **how)
