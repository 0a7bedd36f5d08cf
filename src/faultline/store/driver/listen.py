"""Wake-ups by LISTEN; the poll finds jobs whose wake-up was missed."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Final

import psycopg

from faultline.errors import FaultlineError
from faultline.store.driver.async_connection import AsyncPqConnection, Heard
from faultline.store.driver.connect import aconnect
from faultline.store.driver.exchange import LOOK_AGAIN_SECONDS
from faultline.store.driver.sqlstate import named_errors

ASK_EVERY_SECONDS: Final = 5.0
"""A former primary gets no new jobs, and a LISTEN there no wake-ups: so often the listener asks it."""

Wakes = Callable[[Heard, Callable[[], float]], Coroutine[Any, Any, None]]
"""A source of wake-ups: called with the function to tell, and with one for the pause after an error."""


async def listen(dsn: str, heard: Heard, pause: Callable[[], float]) -> None:
    """Call `heard` with each queue that may have work, until cancelled.

    A wake-up is only a hint, so errors are not logged: without the connection the poll finds the jobs, and
    `pause` gives the seconds until the next try.
    """
    while True:
        with contextlib.suppress(FaultlineError, psycopg.Error):
            async with await aconnect(dsn, AsyncPqConnection) as conn:
                lost = asyncio.Event()
                with named_errors():
                    await conn.listen(heard, lost.set)
                asked_at = monotonic()
                while not (lost.is_set() or conn.is_stale or conn.has_turned):
                    conn.look()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(lost.wait(), LOOK_AGAIN_SECONDS)
                    if monotonic() - asked_at > ASK_EVERY_SECONDS:
                        await conn.execute("")  # the reply shows whether the server has turned read-only
                        asked_at = monotonic()
        heard(None)
        await asyncio.sleep(pause())
