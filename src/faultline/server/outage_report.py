"""The log of a server while its database is away: a line in five seconds, and one at the end.

RequestGuard, the gRPC calls and the driver's pool each notice it for every call. Their lines are caught
here, counted, and logged as one.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import psycopg

from faultline.errors import FaultlineError
from faultline.store.connection_turns import on_behalf_of_server
from faultline.store.driver.connect import acheck_server
from faultline.store.pool import AsyncStore
from faultline.store.session import OUTAGE
from faultline.telemetry import scrub
from faultline.telemetry.pool_logs import POOLS, SAID_EVERY, is_of_our_pool

log = logging.getLogger("faultline.server")

CAUGHT: Final = ("faultline.server", "faultline.remote", POOLS)
LOOK_EVERY: Final = 1.0
LOOK_SECONDS_MAX: Final = 5.0
REASON_CHARS_MAX: Final = 300


def outage_mark(error: BaseException) -> dict[str, Any]:
    """For `extra` of a log call about a failed call: whether the database is the reason."""
    return {"database_outage": isinstance(error, (*OUTAGE, TimeoutError))}


class OutageReport(logging.Filter):
    """The outages of one server's database, logged in few lines."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__()
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._said_at = -SAID_EVERY
        self._told = False
        self._signs = 0
        self._refused = 0
        self._reason = ""
        self.watching: asyncio.Task[None] | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Hold back the lines that an outage brings, and take them as its sign."""
        if getattr(record, "database_outage", False):
            self._refused += 1
        elif not (record.name == POOLS and is_of_our_pool(record) and record.levelno >= logging.WARNING):
            return True
        elif not record.getMessage().startswith("error connecting"):
            return False  # a repeated try, or a dropped broken connection: the same outage
        reason = record.getMessage().strip().splitlines()
        self._loop.call_soon_threadsafe(self._met, scrub(reason[0] if reason else "")[:REASON_CHARS_MAX])
        return False

    def _met(self, reason: str) -> None:
        self._signs += 1
        self._reason = reason
        if self._since is None:
            self._since = time.monotonic()
        self._say_away()
        if self.watching is None or self.watching.done():
            self.watching = asyncio.create_task(self._until_it_is_back(), context=on_behalf_of_server())

    def _say_away(self) -> None:
        now = time.monotonic()
        if self._since is None or now - self._said_at < SAID_EVERY:
            return
        self._said_at, self._told = now, True
        log.warning(
            "the database has not served for %.0f s, calls refused so far: %d; clients are told to ask again "
            "and this server goes on when it is back; look with `faultline doctor`: %s",
            now - self._since, self._refused, self._reason,
        )  # fmt: skip

    async def _until_it_is_back(self) -> None:
        while self._since is not None:
            await asyncio.sleep(LOOK_EVERY)
            signs = self._signs
            if not await self._answers():
                self._say_away()
                continue
            back = time.monotonic()
            # Logged in its turn, and once: an unstable link is not worth a line for each change.
            await asyncio.sleep(max(0.0, self._said_at + SAID_EVERY - back))
            if self._signs == signs:
                self._say_back(back - self._since)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(LOOK_SECONDS_MAX), self._store.connection() as conn:
                await acheck_server(conn)
        except (FaultlineError, psycopg.Error, TimeoutError, OSError):
            return False
        return True

    def _say_back(self, lasted: float) -> None:
        if self._told:
            log.info("the database serves again after %.1f s, calls refused: %d", lasted, self._refused)
            self._said_at = time.monotonic()
        self._since, self._told, self._refused = None, False, 0


@contextlib.asynccontextmanager
async def reporting_outages(store: AsyncStore) -> AsyncIterator[None]:
    """During the block, outages of this store's database are logged rarely."""
    report = OutageReport(store)
    loggers = [logging.getLogger(name) for name in CAUGHT]
    for logger in loggers:
        logger.addFilter(report)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(report)
        if report.watching is not None:
            report.watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await report.watching
