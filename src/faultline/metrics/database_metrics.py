"""Figures of the whole database, for the one exporter that queries them."""

import asyncio
import logging
import time
from typing import Final

from faultline.metrics.names import METRICS
from faultline.metrics.series import Snapshot
from faultline.store import calls
from faultline.store.pool import AsyncStore
from faultline.store.rows import MetricRow

log = logging.getLogger("faultline.metrics")

ANSWER_SECONDS_MAX: Final = 3.0
"""The bound on one answer: a scrape that hangs tells less than one that reports the database as away."""

FRESH_SECONDS: Final = 2.0
"""More frequent requests get the same answer."""

SHARE: Final = 20
"""Counting takes at most one twentieth of a core: after a slow answer, a rest of twenty times its time."""


def of_rows(figures: list[MetricRow]) -> Snapshot:
    """Rows of `faultline.metrics()` as figures; rows that only a newer schema has are left out.

    >>> of_rows([MetricRow("queue_lag_seconds", ["default"], 1.5), MetricRow("from_the_future", [], 1)])
    {'queue_lag_seconds': {('default',): 1.5}}
    """
    snapshot: Snapshot = {}
    for name, labels, value in figures:
        if name in METRICS:
            snapshot.setdefault(name, {})[tuple(labels)] = value
    return snapshot


class DatabaseMetrics:
    """Asks one question at a time, shared by all requests, within a bound on time."""

    def __init__(self, astore: AsyncStore) -> None:
        self._astore = astore
        self._turn = asyncio.Lock()
        self._last: Snapshot = {}
        self._ask_at = 0.0

    async def read(self) -> Snapshot:
        """The database's figures, or one that says that it does not answer."""
        async with self._turn:
            if time.monotonic() >= self._ask_at:
                await self._ask()
            return self._last

    async def _ask(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                answer = of_rows(await self._astore.run(calls.metrics()))
        except Exception as trouble:  # away, too slow, not migrated: one figure covers all
            log.debug("the database did not tell its figures: %s", trouble)
            self._last = {"database_up": {(): 0.0}}
        else:
            self._last = {**answer, "database_up": {(): 1.0}}
        took = time.monotonic() - began
        self._last["database_scrape_seconds"] = {(): took}
        self._ask_at = time.monotonic() + max(FRESH_SECONDS, took * SHARE)
