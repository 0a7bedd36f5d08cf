"""Jobs that this worker cannot run and others can: told once a minute for each task, and left to them."""

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from faultline.bounds import check_task_name
from faultline.errors import BadName, ConfigError
from faultline.extensions.transactions import MARK
from faultline.task import Registry, TaskSpec
from faultline.telemetry.rate_limited import RateLimited
from faultline.worker.attempt import Attempt
from faultline.worker.execution.outcomes import NO_DATABASE

log = logging.getLogger("faultline.worker")

TOLD_EVERY: Final = 60.0

LEFT_FOR: Final = 60.0
"""Seconds for which claims leave a task to others; then it is looked at again, and told again."""

LEFT_MAX: Final = 50
"""Tasks that claims except at once: each is compared with each job they look at."""


class UnservedTasks:
    """What came back because it was claimed by the wrong worker."""

    def __init__(self) -> None:
        self._seldom = RateLimited(TOLD_EVERY)
        self._left: dict[str, float] = {}

    def leave(self, task: str) -> bool:
        """Claim no jobs of this task for a while; False where there are too many such tasks.

        False as well for a name that no task can have, of a damaged row: no server takes such a name.
        """
        if task not in self._left and (len(self._left) >= LEFT_MAX or not _is_name(task)):
            return False
        self._left[task] = time.monotonic() + LEFT_FOR
        return True

    def names(self) -> Sequence[str]:
        """The tasks that are left to others just now; mostly there are none."""
        if not self._left:
            return ()
        now = time.monotonic()
        self._left = {task: until for task, until in self._left.items() if until > now}
        return tuple(self._left)

    def tell_unknown(self, attempt: Attempt) -> None:
        """Log that no handler here has the task of a claimed job."""
        task, queue = attempt.job.task, attempt.job.queue
        if self._seldom.allows(f"unknown {task}"):
            log.warning(
                "no task %s is registered in this worker's app; its jobs in queue %s are left to other "
                "workers: import the module that defines it, correct the name where it is enqueued, or give "
                "each app a queue of its own", task, queue,
            )  # fmt: skip

    def look(self, attempt: Attempt, outcome: object) -> None:
        """Log an outcome that says that the job needs a database, which this worker does not have."""
        task, queue = attempt.job.task, attempt.job.queue
        if getattr(outcome, "reason", "").startswith(NO_DATABASE) and self._seldom.allows(f"database {task}"):
            log.warning(
                "task %s uses job.complete(), and this worker has no DSN; its jobs are left to other "
                "workers of queue %s, no attempt is counted: give this one --dsn (FAULTLINE_DSN), or a queue "
                "without such tasks", task, queue,
            )  # fmt: skip


def check_needs(tasks: Registry, queues: Iterable[str]) -> None:
    """Without a DSN: refuse to start where a task of these queues needs one, warn where it seems so."""
    served = [spec for spec in tasks if spec.queue in set(queues)]
    needs = sorted(spec.name for spec in served if spec.transaction is True)
    if needs:
        raise ConfigError(
            f"{_named(needs)}: transaction=True, so job.complete() is needed, and this worker has no DSN; "
            "nothing was started: give it --dsn (FAULTLINE_DSN) beside --server, or queues without them"
        )
    seems = sorted(spec.name for spec in served if _mentions_complete(spec))
    if seems:
        log.warning(
            "%s: job.complete() seems to be used, and this worker has no DSN, so such jobs are left to "
            "other workers; give it --dsn (FAULTLINE_DSN), or queues without them", _named(seems),
        )  # fmt: skip


def _is_name(task: str) -> bool:
    try:
        return bool(check_task_name(task))
    except BadName:
        return False


def _mentions_complete(spec: TaskSpec) -> bool:
    if spec.injection is not None and hasattr(spec.injection.transaction, MARK):
        return True
    code: Any = getattr(spec.handler, "__code__", None)
    return spec.takes_job and code is not None and "complete" in code.co_names


def _named(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"tasks {', '.join(names[:5])}{more}" if len(names) > 1 else f"task {names[0]}"
