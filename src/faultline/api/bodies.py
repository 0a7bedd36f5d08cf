"""Bodies are read whole, within a size, a time, and a sum of all that are in memory at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from faultline.api.asked import Asked
from faultline.api.problems import BODY_TOO_LARGE, MALFORMED, OVERLOADED, TOO_SLOW, Refused
from faultline.server.limits import Limits

Receive = Callable[[], Awaitable[Any]]

TOGETHER: Final = 16
"""How many of the largest bodies there may be in memory at once."""


class Bodies:
    """Counts the bytes of every body in hand."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes_max = TOGETHER * limits.batch_bytes_max
        self.bytes_in_hand = 0

    @asynccontextmanager
    async def read(self, asked: Asked, receive: Receive, most: int) -> AsyncIterator[bytes]:
        """The whole body, counted for as long as the block lasts."""
        said = asked.length
        if said is not None and said > most:
            raise Refused(BODY_TOO_LARGE, f"{said:,} bytes, and {most:,} are taken")
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds_max):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(MALFORMED, "the client hung up in mid-body")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    self._count(len(part), size, most)
                    parts.append(part)
        except TimeoutError:
            self.bytes_in_hand -= size
            raise Refused(TOO_SLOW, f"the body took over {self._limits.body_seconds_max:g} s") from None
        except BaseException:
            self.bytes_in_hand -= size
            raise
        try:
            yield parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            self.bytes_in_hand -= size

    def _count(self, more: int, size: int, most: int) -> None:
        self.bytes_in_hand += more
        if size > most:
            raise Refused(BODY_TOO_LARGE, f"over {most:,} bytes, and no more are taken")
        if self.bytes_in_hand > self._bytes_max:
            raise Refused(OVERLOADED, "too many large bodies at once", 1)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, and then what the real one gives."""
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
