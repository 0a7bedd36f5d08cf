"""Long polls: waits for the end of a job. One question to the database serves them all."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from faultline.errors import DatabaseError
from faultline.server.problems import OVERLOADED, RequestRefused
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.connection_turns import on_behalf_of_server

log = logging.getLogger("faultline.server")

ASK_EVERY: Final = 0.1
ASK_EVERY_IN_TROUBLE: Final = 1.0

Run = Callable[[Call[Any]], Awaitable[Any]]


class JobWaits:
    """The awaited jobs, up to a number of clients that wait."""

    def __init__(self, run: Run, most: int) -> None:
        self._run = run
        self._most = most
        self._waiting: dict[int, set[asyncio.Future[None]]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._count = 0
        self._over = False

    async def end_of(self, job_id: int, seconds: float) -> None:
        """Return when the job has ended, when the time is up, or when the server stops."""
        if self._over:
            return
        if self._count >= self._most:
            raise RequestRefused(OVERLOADED, f"{self._count} clients wait for jobs already", 1)
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, set()).add(news)
        self._count += 1
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), context=on_behalf_of_server())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await news
        finally:
            self._count -= 1
            self._waiting[job_id].discard(news)
            if not self._waiting[job_id]:
                del self._waiting[job_id]

    def end(self) -> None:
        """Release all waits."""
        self._over = True
        for job_id in list(self._waiting):
            self._tell(job_id)

    async def _ask(self) -> None:
        while self._waiting:
            pause = ASK_EVERY
            try:
                for job_id in await self._run(calls.ended(list(self._waiting))):
                    self._tell(job_id)
            except (DatabaseError, TimeoutError):
                pause = ASK_EVERY_IN_TROUBLE
            except Exception:
                log.exception("asking for jobs that are awaited failed; the next turn comes as usual")
                pause = ASK_EVERY_IN_TROUBLE
            await asyncio.sleep(pause)

    def _tell(self, job_id: int) -> None:
        for news in self._waiting.get(job_id, ()):
            if not news.done():
                news.set_result(None)
