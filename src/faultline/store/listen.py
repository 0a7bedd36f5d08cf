"""Wake-ups: LISTEN, with the poll of whoever is woken behind it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
from psycopg import AsyncConnection

from faultline.errors import FaultlineError
from faultline.store.connect import aconnect
from faultline.store.faults import named_errors
from faultline.store.lean import LOOK_AGAIN_SECONDS

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
            async with await aconnect(dsn) as conn:
                with named_errors():
                    await conn.execute(f"listen {CHANNEL}")
                    heard("")  # what came before we listened was not heard
                    await _hear_on(conn, heard)
        except (FaultlineError, psycopg.Error):
            heard(None)
            await asyncio.sleep(pause())


async def _hear_on(conn: AsyncConnection[Any], heard: Heard) -> None:
    """Tell of each wake-up in the very moment its bytes arrive, until the connection breaks.

    Straight from the socket: the driver's own iterator takes two more turns of the loop.
    """
    loop = asyncio.get_running_loop()
    broken: asyncio.Future[None] = loop.create_future()
    pgconn, fileno = conn.pgconn, conn.fileno()  # a broken connection no longer knows its own

    def read() -> None:
        try:
            pgconn.consume_input()
            while news := pgconn.notifies():
                heard(news.extra.decode(errors="replace"))
        except Exception as fault:  # whoever awaits hears of it, not the loop
            loop.remove_reader(fileno)
            if not broken.done():
                broken.set_exception(fault)

    loop.add_reader(fileno, read)
    try:
        while not broken.done():
            read()  # what came together with the answer to LISTEN; then because of what uvloop forgets
            await asyncio.wait([broken], timeout=LOOK_AGAIN_SECONDS)
        await broken
    finally:
        loop.remove_reader(fileno)
