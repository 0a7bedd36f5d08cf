"""TimeBudget: the longest wait of one request for the database, over all its steps."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic


class TimeBudget:
    """A number of seconds, spent in steps; TimeoutError at the end. A client's own time is not spent.

    A frozen database is silent at every step: at the key's and at the request's. Each step has a bound of its
    own, but a client would wait for their sum.
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
