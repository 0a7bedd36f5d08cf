"""CancelNotices: jobs cancelled through another API or replica are announced to their sessions here."""

import asyncio
import logging
from collections.abc import Iterable

import psycopg

from faultline.errors import FaultlineError
from faultline.job import JobState
from faultline.server.grpc.workers_service import WorkersService
from faultline.store import calls
from faultline.store.pool import AsyncStore

log = logging.getLogger("faultline.remote")


class CancelNotices:
    """Checks before it announces: the news is only a hint, which any database connection can send."""

    def __init__(self, store: AsyncStore, workers: WorkersService) -> None:
        self._store = store
        self._workers = workers
        self._named: set[int] = set()
        self._news = asyncio.Event()

    def heard(self, job_ids: Iterable[int]) -> None:
        """Note the news of cancelled jobs; those assigned here are checked in the next round."""
        self._named.update(job_id for job_id in job_ids if self._workers.gave(job_id))
        if self._named:
            self._news.set()

    async def run(self) -> None:
        """Check and announce, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            named, self._named = self._named, set()
            for job_id in named:
                try:
                    await self._look(job_id)
                except (FaultlineError, psycopg.Error, TimeoutError) as trouble:
                    log.debug("of job %d its worker's next beat will tell: %s", job_id, trouble)
                except Exception:
                    log.exception("looking whether job %d was cancelled failed; its next beat tells", job_id)

    async def _look(self, job_id: int) -> None:
        found = await self._store.run(calls.outline(job_id))
        if found is not None and found.state == JobState.CANCELLED:
            self._workers.cancelled(job_id)
