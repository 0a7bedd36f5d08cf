"""Health and reflection: to ask once whether the server is well takes no key, to keep a stream open does."""

from collections.abc import AsyncIterator
from typing import Any, Final

from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from faultline.remote.serving.gate import WAIT, Context, Gate, host_of
from faultline.remote.serving.probes import Probes
from faultline.remote.serving.problems import TOO_SLOW, TurnedAway, answering

IDLE_SECONDS_MAX: Final = 30.0
"""How long a tool may leave a stream of reflection open without asking anything."""


class KeyedHealth(health.aio.HealthServicer):  # type: ignore[misc]
    """Check is for probes, without a key. Watch is a stream without end: it takes one, and ends with it."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate
        self._probes = Probes()

    async def Check(self, unread: Any, context: Context) -> Any:
        address = host_of(context.peer()) or ""
        async with answering(context):
            self._gate.look_at_the_certificate(context)
            return await super().Check(await self._probes.message(context, address), context)

    async def Watch(self, unread: Any, context: Context) -> None:
        async with answering(context):
            caller = await self._gate.who(context)
            with self._gate.passing(caller, WAIT):
                async with self._gate.message(context, caller, WAIT) as request:
                    await self._gate.while_known(context, super().Watch(request, context))


class KeyedReflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]
    """What there is to call, for tools, as long as their key opens something."""

    def __init__(self, gate: Gate, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self._gate = gate

    async def ServerReflectionInfo(self, request_iterator: Any, context: Context) -> AsyncIterator[Any]:
        async with answering(context):
            caller = await self._gate.who(context)
            with self._gate.passing(caller, WAIT):
                answers = super().ServerReflectionInfo(self._known(request_iterator, context), context)
                async for answer in answers:
                    yield answer

    async def _known(self, requests: Any, context: Context) -> AsyncIterator[Any]:
        """Requests, each while the key is still good and the next comes soon."""
        asked = aiter(requests)
        while True:
            try:
                request = await self._gate.while_known(context, anext(asked), seconds_max=IDLE_SECONDS_MAX)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise TurnedAway(TOO_SLOW, f"nothing was asked for {IDLE_SECONDS_MAX:g} s") from None
            yield request.parsed()
