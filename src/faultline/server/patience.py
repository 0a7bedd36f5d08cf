"""How long one request may wait for the database in all, whichever of its steps takes the time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic


class Patience:
    """A number of seconds, spent in steps; TimeoutError when they are over. A client's own time is not spent.

    A frozen database is silent at every step: its key's and its own. Each gives up by itself, but after one
    another a client would wait for their sum.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    @asynccontextmanager
    async def spent(self) -> AsyncIterator[None]:
        began = monotonic()
        try:
            async with asyncio.timeout(self.left):
                yield
        finally:
            self.left -= monotonic() - began
