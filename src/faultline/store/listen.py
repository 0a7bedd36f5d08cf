"""Wake-ups: LISTEN, with the poll of whoever is woken behind it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg

from faultline.errors import FaultlineError
from faultline.store.connect import aconnect
from faultline.store.faults import named_errors
from faultline.store.lean import LeanConnection

CHANNEL = "faultline"

Heard = Callable[[str | None], None]
"""Called with the queue that may have work, with "" for all, with None when nothing can be heard now."""

Wakes = Callable[[Heard, Callable[[], float]], Coroutine[Any, Any, None]]
"""Where wake-ups come from: given whom to tell, and how long to pause after trouble."""


async def listen(dsn: str, heard: Heard, pause: Callable[[], float]) -> None:
    """Call `heard` with each queue that may have work, until cancelled.

    Only a hint, so trouble is not worth a word: while the connection is gone the poll does its work, and
    `pause` says how long to wait before it is made again.
    """
    while True:
        try:
            async with await aconnect(dsn, LeanConnection) as conn:
                with named_errors():
                    await conn.execute(f"listen {CHANNEL}")
                    heard("")  # what came before we listened was not heard
                    async for notice in conn.notifies():
                        heard(notice.payload)
        except (FaultlineError, psycopg.Error):
            heard(None)
            await asyncio.sleep(pause())
