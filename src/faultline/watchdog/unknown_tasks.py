"""UnknownTasks: a chore for due jobs that no running worker of their queue knows."""

import logging
import time
from typing import Final

from faultline.bounds import counted
from faultline.store import calls
from faultline.store.rows import UnknownJobs
from faultline.store.session import DbSession
from faultline.telemetry.rate_limited import RateLimited

log = logging.getLogger("faultline.watchdog")

LOOK_EVERY: Final = 10.0
SHARE: Final = 100
"""Counting the due jobs takes at most one hundredth of a core, however many there are."""

WAITED_MIN: Final = 5.0
"""Seconds for which a task is unknown before it is told: in a deployment some workers start later."""

TOLD_EVERY: Final = 60.0


class UnknownTasks:
    """Has the jobs marked, and after a day under the mark buried; logs a line a minute for each task."""

    def __init__(self, line: DbSession) -> None:
        self.line = line
        self._seldom = RateLimited(TOLD_EVERY)
        self._look_at = 0.0

    async def __call__(self) -> None:
        began = time.monotonic()
        if began < self._look_at:
            return
        found = await self.line.run(calls.unknown_tasks())
        ended = time.monotonic()
        self._look_at = ended + max(LOOK_EVERY, (ended - began) * SHARE)
        for unknown in found:
            is_old = unknown.seconds >= WAITED_MIN or unknown.died
            if is_old and self._seldom.allows(f"{unknown.queue}/{unknown.task}"):
                log.warning("%s", told(unknown))


def told(unknown: UnknownJobs) -> str:
    """The line about one task: which jobs wait, who may know it, and what to do.

    >>> print(told(UnknownJobs("default", "uors", 3, 12.0, 0, [], [], [])))
    no running worker of queue default knows the task uors, 3 jobs wait: no worker seen lately knew it; \
correct the name where it is enqueued, or start the worker of its app. After a day they are dead
    """
    dead = f", {counted(unknown.died, 'job')} are dead after a day of this" if unknown.died else ""
    return (
        f"no running worker of queue {unknown.queue} knows the task {unknown.task}, "
        f"{counted(unknown.jobs, 'job')} wait{dead}: {_who_may_know(unknown)}. After a day they are dead"
    )


def _who_may_know(unknown: UnknownJobs) -> str:
    if unknown.elsewhere:
        return (
            f"{', '.join(unknown.elsewhere)} of queue {', '.join(unknown.other_queues)} knows it; enqueue it "
            f"there, or have that worker serve {unknown.queue} too"
        )
    if unknown.gone:
        return f"{', '.join(unknown.gone)} knew it, and has stopped or is silent; start it again"
    return (
        "no worker seen lately knew it; correct the name where it is enqueued, or start the worker of its app"
    )
