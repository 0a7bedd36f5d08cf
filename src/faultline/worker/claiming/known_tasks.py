"""KnownTasks: the names by which the database, or a server, finds the jobs that this worker can run."""

import asyncio
import logging
from typing import Final

from faultline.task import Registry
from faultline.worker.backend import Backend

log = logging.getLogger("faultline.worker")

TASKS_MAX: Final = 1000
"""A worker with more tasks names none: its claims take every job, and it gives back what it cannot run."""

LOOK_SECONDS: Final = 1.0
"""A handler may import a module that defines tasks: until then their jobs wait for other workers."""


class KnownTasks:
    """The tasks of the app, named again when a module that is imported later adds some."""

    def __init__(self, tasks: Registry, backend: Backend) -> None:
        self._tasks = tasks
        self._backend = backend
        self._named = 0

    def names(self) -> list[str] | None:
        """The names to register; None when there are too many."""
        self._named = len(self._tasks)
        if self._named > TASKS_MAX:
            log.warning(
                "this app has %d tasks, and a worker names at most %d: it claims jobs of other apps too, and "
                "gives them back; give each app a queue or a database of its own", self._named, TASKS_MAX,
            )  # fmt: skip
            return None
        return sorted(spec.name for spec in self._tasks)

    async def run(self) -> None:
        """Name the tasks again whenever there are more, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            named = self._named
            if len(self._tasks) == named:
                continue
            try:
                await self._backend.declare_limits(self._tasks)
                await self._backend.know_tasks(self.names())
            except Exception as trouble:
                self._named = named
                log.debug("the tasks could not be named now: %s", trouble)
