"""Health and reflection: a single health check needs no key, an open stream needs one."""

from collections.abc import AsyncIterator
from typing import Any, Final

from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from faultline.server.grpc.call_status import answering
from faultline.server.grpc.guard.call_guard import WAIT, CallGuard, Context, host_of
from faultline.server.grpc.guard.keyless_calls import KeylessCalls
from faultline.server.problems import TOO_SLOW, RequestRefused

IDLE_SECONDS_MAX: Final = 30.0
"""The bound on a reflection stream without requests."""


class KeyedHealth(health.aio.HealthServicer):  # type: ignore[misc]
    """Check is for probes and needs no key. Watch is a stream without end: it lasts as long as its key."""

    def __init__(self, guard: CallGuard) -> None:
        super().__init__()
        self._guard = guard
        self._probes = KeylessCalls()

    async def Check(self, unread: Any, context: Context) -> Any:
        address = host_of(context.peer()) or ""
        async with answering(context):
            self._guard.look_at_the_certificate(context)
            return await super().Check(await self._probes.message(context, address), context)

    async def Watch(self, unread: Any, context: Context) -> None:
        async with answering(context):
            caller = await self._guard.who(context)
            with self._guard.passing(caller, WAIT):
                async with self._guard.message(context, caller, WAIT) as request:
                    await self._guard.while_known(context, super().Watch(request, context))


class KeyedReflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]
    """The list of services and methods, for tools, as long as their key is valid."""

    def __init__(self, guard: CallGuard, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self._guard = guard

    async def ServerReflectionInfo(self, request_iterator: Any, context: Context) -> AsyncIterator[Any]:
        async with answering(context):
            caller = await self._guard.who(context)
            with self._guard.passing(caller, WAIT):
                answers = super().ServerReflectionInfo(self._known(request_iterator, context), context)
                async for answer in answers:
                    yield answer

    async def _known(self, requests: Any, context: Context) -> AsyncIterator[Any]:
        """Requests, each read while the key is still valid and within the bound on silence."""
        asked = aiter(requests)
        while True:
            try:
                request = await self._guard.while_known(context, anext(asked), seconds_max=IDLE_SECONDS_MAX)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise RequestRefused(TOO_SLOW, f"nothing was asked for {IDLE_SECONDS_MAX:g} s") from None
            yield request.parsed()
