"""A watchdog beside the server: with remote workers alone, no other process takes lost jobs back."""

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
    # The leader needs a unique number. Workers have the numbers above 0; a server has none.
    number = -1 - secrets.randbelow(2**31 - 1)
    running = asyncio.create_task(Watchdog(dsn, number, TICK, prepare=prepare).run())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
