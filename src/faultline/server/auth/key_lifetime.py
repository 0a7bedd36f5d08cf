"""Work that outlasts one check of a key: it ends when the key does."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from faultline.errors import DatabaseError
from faultline.server.auth import LOOK_EVERY_SECONDS

T = TypeVar("T")


async def while_known(
    work: Awaitable[T],
    look: Callable[[], Awaitable[Any]],
    every: float = LOOK_EVERY_SECONDS,
    seconds_max: float | None = None,
    dropped: Callable[[T], None] | None = None,
) -> T:
    """Await work, and check the caller's key meanwhile; an error raised by `look` ends the work.

    While the database is away the last answer about the key stays valid. TimeoutError when the work has
    lasted for `seconds_max`.

    The work may end during a check of its key, or as the caller hangs up: `dropped` gets the result that
    no caller will receive.
    """
    doing = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    until = None if seconds_max is None else loop.time() + seconds_max
    given = False
    try:
        while True:
            left = every if until is None else min(every, until - loop.time())
            if (await asyncio.wait([doing], timeout=max(0.0, left)))[0]:
                given = True
                return await doing
            if until is not None and loop.time() >= until:
                raise TimeoutError
            with suppress(DatabaseError, psycopg.Error):
                await look()
    finally:
        if not doing.done():
            doing.cancel()
            with suppress(asyncio.CancelledError):
                await doing
        if not given and dropped is not None and _came_to_something(doing):
            dropped(doing.result())


def _came_to_something(doing: asyncio.Future[T]) -> bool:
    return doing.done() and not doing.cancelled() and doing.exception() is None
