"""Bodies are read whole, within a size, a time, and a bound on all bodies in memory.

The bound is shared: one key has a part of it, so that its unfinished bodies stop no other key's writes.
Small bodies are counted and never refused for it: the bound on calls limits their number.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from faultline.server.http.guard.request_head import RequestHead
from faultline.server.limits import Limits
from faultline.server.problems import MALFORMED, OVERLOADED, TOO_LARGE, TOO_MANY, TOO_SLOW, RequestRefused

Receive = Callable[[], Awaitable[Any]]

TOGETHER: Final = 16
"""The number of bodies of the largest size in memory at once."""

TOGETHER_OF_A_KEY: Final = 6
"""The same for the bodies of one key."""

SMALL_BYTES: Final = 65_536


class Bodies:
    """Counts the bytes of every body in memory."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes_max = TOGETHER * limits.batch_bytes_max
        self._bytes_max_of_a_key = TOGETHER_OF_A_KEY * limits.batch_bytes_max
        self._of_key: Counter[str] = Counter()

    @property
    def bytes_in_hand(self) -> int:
        return self._of_key.total()

    @asynccontextmanager
    async def read(self, head: RequestHead, receive: Receive, most: int, name: str) -> AsyncIterator[bytes]:
        """The whole body, counted for as long as the block lasts."""
        said = head.length
        if said is not None and said > most:
            raise RequestRefused(TOO_LARGE, f"{said:,} bytes, and {most:,} are taken")
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds_max):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestRefused(MALFORMED, "the client hung up in mid-body")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    self._count(name, len(part), size, most)
                    parts.append(part)
        except TimeoutError:
            self._forget(name, size)
            raise RequestRefused(
                TOO_SLOW, f"the body took over {self._limits.body_seconds_max:g} s"
            ) from None
        except BaseException:
            self._forget(name, size)
            raise
        try:
            yield parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            self._forget(name, size)

    def _count(self, name: str, more: int, size: int, most: int) -> None:
        self._of_key[name] += more
        if size > most:
            raise RequestRefused(TOO_LARGE, f"over {most:,} bytes, and no more are taken")
        if size <= SMALL_BYTES:
            return
        if self._of_key[name] > self._bytes_max_of_a_key:
            raise RequestRefused(TOO_MANY, "too many large bodies of this key at once", 1)
        if self.bytes_in_hand > self._bytes_max:
            raise RequestRefused(OVERLOADED, "too many large bodies at once", 1)

    def _forget(self, name: str, size: int) -> None:
        self._of_key[name] -= size
        if not self._of_key[name]:
            del self._of_key[name]


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, and then the messages of the real one."""
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
