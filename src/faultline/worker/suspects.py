"""Suspects: jobs that crashed before. Each runs alone, in a child process, whatever its handler is.

A worker that dies takes everything in its hands with it, and nobody can tell which of those jobs did it. So
from then on each of them runs where it can harm nobody else, and where a crash can only be its own. The first
time in a child that may have run others before it, one at a time; after that always in a fresh one, where
nobody has left anything behind: only such a crash counts towards `max_crashes`.
"""

import logging

from faultline.errors import ConfigError, LeaseLost
from faultline.outcome import Outcome, Released
from faultline.task import TaskSpec
from faultline.worker.children import Children
from faultline.worker.hand import Hand
from faultline.worker.places import Place, suspects_place_of
from faultline.worker.ward import CannotRunHere

log = logging.getLogger("faultline.worker")


class Suspects:
    """The children of a worker that run suspects, apart from those that run handlers with run="process"."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self._places: dict[str, Place | None] = {}
        """Where a child finds each handler; None where it cannot."""

    def take(self, spec: TaskSpec) -> bool:
        """Whether suspects of this task run alone: its handler can be imported, and it wants to."""
        if spec.max_crashes is None:
            return False
        if spec.name not in self._places:
            try:
                self._places[spec.name] = suspects_place_of(spec)
            except ConfigError as why:
                self._give_up(spec.name, str(why))
        return self._places[spec.name] is not None

    async def run(self, hand: Hand) -> Outcome | LeaseLost | None:
        """Run one suspect in a child; where that cannot be done at all, it comes back and runs as usual."""
        try:
            return await self._children.run_at(hand, self._places[hand.job.task], fresh=hand.job.crashes > 1)
        except CannotRunHere as why:
            self._give_up(hand.job.task, str(why))
            return Released(f"it cannot run alone: {why}")

    def _give_up(self, task: str, why: str) -> None:
        self._places[task] = None
        log.warning("task %s: its jobs cannot run alone after a crash, and run beside others: %s", task, why)

    async def close(self) -> None:
        await self._children.close()
