"""A watchdog beside the server: where all workers are remote, nobody else would take lost jobs back."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

from faultline.watchdog.watchdog import Watchdog

TICK: Final = timedelta(seconds=1)


@contextlib.asynccontextmanager
async def watching(dsn: str, *, prepare: bool) -> AsyncIterator[None]:
    """Make rounds for as long as the block lasts."""
    # Whoever leads needs a number no other has. Workers have those above 0; a server is none of them.
    number = -1 - secrets.randbelow(2**31 - 1)
    running = asyncio.create_task(Watchdog(dsn, number, TICK, prepare=prepare).run())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
