"""Suspects: jobs that crashed before. Each runs alone, in a child process, whatever its handler is.

A worker that dies takes all its running jobs with it, and nothing tells which of them did it. So
from then on each of them runs where it can harm no other, and where a crash can only be its own. The first
time in a child that may have run others before it, one at a time; after that always in a fresh one, where
no earlier job has left anything behind: only such a crash counts towards `max_crashes`.
"""

import logging

from faultline.errors import ConfigError, LeaseLost
from faultline.outcome import Outcome
from faultline.task import TaskSpec
from faultline.worker.attempt import Attempt
from faultline.worker.execution.outcomes import given_back
from faultline.worker.processes.child_handle import CannotRunHere
from faultline.worker.processes.child_pool import ChildPool
from faultline.worker.processes.import_path import ImportPath, suspects_import_path_of

log = logging.getLogger("faultline.worker")


class Suspects:
    """The children of a worker that run suspects, apart from those that run handlers with run="process"."""

    def __init__(self, children: ChildPool) -> None:
        self._children = children
        self._places: dict[str, ImportPath | None] = {}
        """Where a child finds each handler; None where it cannot."""

    def take(self, spec: TaskSpec) -> bool:
        """Whether suspects of this task run alone: its handler can be imported, and it wants to."""
        if spec.max_crashes is None:
            return False
        if spec.name not in self._places:
            try:
                self._places[spec.name] = suspects_import_path_of(spec)
            except ConfigError as why:
                self._give_up(spec.name, str(why))
        return self._places[spec.name] is not None

    async def run(self, attempt: Attempt) -> Outcome | LeaseLost | None:
        """Run one suspect in a child; where that cannot be done at all, it comes back and runs as usual."""
        try:
            return await self._children.run_at(
                attempt, self._places[attempt.job.task], fresh=attempt.job.crashes > 1
            )
        except CannotRunHere as why:
            self._give_up(attempt.job.task, str(why))
            return given_back(f"it cannot run alone: {why}")

    def _give_up(self, task: str, why: str) -> None:
        self._places[task] = None
        log.warning("task %s: its jobs cannot run alone after a crash, and run beside others: %s", task, why)

    async def close(self) -> None:
        await self._children.close()
