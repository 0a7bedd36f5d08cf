"""The job of a log record."""

import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from faultline.job import Job

current: ContextVar[Job | None] = ContextVar("faultline_job", default=None)
"""The job whose handler is running here; the worker sets it around each handler."""


def install_context() -> Callable[[], None]:
    """Put `job_id`, `token` and `task` on every log record from now on; returns how to undo it.

    Outside a handler they are None, so a format string may always name them. The earlier record factory
    goes on making the records.

    >>> remove = install_context()
    >>> logging.getLogger("shop").makeRecord("shop", 20, "f", 1, "m", (), None).job_id is None
    True
    >>> remove()
    """
    before = logging.getLogRecordFactory()
    if isinstance(before, _WithJob):  # installed already: once is enough
        return before.leave_alone
    ours = _WithJob(before)
    logging.setLogRecordFactory(ours)
    return ours.remove


class _WithJob:
    """A record factory that asks another for the record and adds the job."""

    def __init__(self, before: Callable[..., logging.LogRecord]) -> None:
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._before(*args, **kwargs)
        job = current.get()
        if job is None:
            record.job_id = record.token = record.task = None
        else:
            record.job_id, record.token, record.task = job.id, job.token, job.task
        return record

    def remove(self) -> None:
        # Another factory may wrap ours by now; cutting it off would be worse than staying.
        if logging.getLogRecordFactory() is self:
            logging.setLogRecordFactory(self._before)

    def leave_alone(self) -> None:
        """The undo of a second installation: the first one stays."""
