"""Wake-ups: LISTEN, with the poll of whoever is woken behind it."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Final

import psycopg

from faultline.errors import FaultlineError
from faultline.store.connect import aconnect
from faultline.store.faults import named_errors
from faultline.store.lean import LOOK_AGAIN_SECONDS, Heard, LeanConnection

ASK_EVERY_SECONDS: Final = 5.0
"""A server that was the primary is told of no new job: whoever listens there hears nothing any more."""

Wakes = Callable[[Heard, Callable[[], float]], Coroutine[Any, Any, None]]
"""Where wake-ups come from: given whom to tell, and how long to pause after trouble."""


async def listen(dsn: str, heard: Heard, pause: Callable[[], float]) -> None:
    """Call `heard` with each queue that may have work, until cancelled.

    Only a hint, so trouble is not worth a word: while the connection is gone the poll does its work, and
    `pause` says how long to wait before it is made again.
    """
    while True:
        with contextlib.suppress(FaultlineError, psycopg.Error):
            async with await aconnect(dsn, LeanConnection) as conn:
                lost = asyncio.Event()
                with named_errors():
                    await conn.listen(heard, lost.set)
                asked_at = monotonic()
                while not (lost.is_set() or conn.is_stale or conn.has_turned):
                    conn.look()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(lost.wait(), LOOK_AGAIN_SECONDS)
                    if monotonic() - asked_at > ASK_EVERY_SECONDS:
                        await conn.execute("")  # with its reply a server tells that it has turned read-only
                        asked_at = monotonic()
        heard(None)
        await asyncio.sleep(pause())
