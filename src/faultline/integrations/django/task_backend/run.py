"""One attempt of a task: its context, and the signals of its start and end."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections
from django.utils import timezone

from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.django.conf import database_alias
from faultline.integrations.django.task_backend.interface import (
    TaskContext,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from faultline.integrations.django.task_backend.results import (
    NOT_COUNTED,
    UNKNOWN_WORKER,
    class_note,
    error_of,
)
from faultline.job import Job, LedgerEntry
from faultline.outcome import HANDLER_OUTCOMES, Cancel, Dead, Snooze
from faultline.retry import Again, decide
from faultline.store import calls
from faultline.telemetry import describe_error

WORKER_NAME: Final = "FAULTLINE_DJANGO_WORKER"
"""The name of the worker, for the child processes that it starts."""


def name_worker(name: str | None) -> str:
    """Choose the name of this process's worker: what the ledger, and each task's `worker_ids`, call it."""
    os.environ[WORKER_NAME] = name or f"{socket.gethostname()}:{os.getpid()}"
    return os.environ[WORKER_NAME]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultlineContext(TaskContext):
    """What a task that takes its context is given; `job` is Faultline's, with its token and `complete_in`."""

    job: Job


class TaskRun:
    """A task that is running in this process."""

    def __init__(self, task: Any, job: Job, result: Any) -> None:
        self.task = task
        self.job = job
        self.result = result
        self.value: Any = None

    @classmethod
    def begin(
        cls, task: Any, job: Job, args: list[Any], kwargs: dict[str, Any], backend: str | None
    ) -> "TaskRun":
        """Make its result, and send `task_started`."""
        before = _earlier(job)
        began = timezone.now()
        result = TaskResult(
            task=task,
            id=str(job.id),
            status=TaskResultStatus.RUNNING,
            enqueued_at=_as_django_has_it(job.created_at),
            started_at=min((entry.claimed_at for entry in before if entry.claimed_at), default=began),
            last_attempted_at=began,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=backend or task.backend,
            errors=[error_of(entry.error) for entry in before if entry.error],
            worker_ids=_worker_ids(job, before),
        )
        run = cls(task, job, result)
        task_started.send(run.sender, task_result=result)
        return run

    @property
    def sender(self) -> type:
        """The class of its backend, which sends the signals."""
        return type(task_backends[self.result.backend])

    def call(self) -> Any:
        """Call the plain function; its value is what JSON can hold."""
        return _normal(self.task.call(*self._given(), *self.result.args, **self.result.kwargs))

    async def acall(self) -> Any:
        """Call the async function."""
        return _normal(await self.task.acall(*self._given(), *self.result.args, **self.result.kwargs))

    def _given(self) -> tuple[Any, ...]:
        if not self.task.takes_context:
            return ()
        return (FaultlineContext(task_result=self.result, job=self.job),)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Send `task_finished` at the end, unless the task will be tried again."""
        try:
            yield
        except BaseException as error:
            if note := class_note(error):
                error.add_note(note)
            if self._is_last(error):
                self.result.errors.append(error_of(describe_error(error)))
                self._finish(TaskResultStatus.FAILED)
            raise
        if isinstance(self.value, (Cancel, Dead)):
            self._finish(TaskResultStatus.FAILED)
        elif not isinstance(self.value, Snooze):
            object.__setattr__(self.result, "_return_value", self.value)
            self._finish(TaskResultStatus.SUCCESSFUL)

    def _finish(self, status: Any) -> None:
        object.__setattr__(self.result, "finished_at", timezone.now())
        object.__setattr__(self.result, "status", status)
        task_finished.send(self.sender, task_result=self.result)

    def _is_last(self, error: BaseException) -> bool:
        """Whether the job ends with this error, as far as its worker can say."""
        if isinstance(error, HANDLER_OUTCOMES):
            return not isinstance(error, Snooze)
        if self.job.lost:
            return False
        from faultline.integrations.django.project import app

        rules = app.registry.find(self.job.task).retry
        again = isinstance(decide(rules, self.job.attempt, error), Again)
        return not again or self.job.attempt >= self.job.max_attempts


def _normal(value: Any) -> Any:
    return value if isinstance(value, HANDLER_OUTCOMES) else normalize_json(value)


def _earlier(job: Job) -> list[LedgerEntry]:
    """The attempts before this one."""
    if job.attempt <= 1:
        return []
    entries = DjangoCarrier(connections[database_alias()]).run(calls.history(job.id))
    return [entry for entry in entries if entry.outcome not in NOT_COUNTED]


def _worker_ids(job: Job, before: list[LedgerEntry]) -> list[str]:
    by_attempt = {entry.attempt: entry.worker for entry in before}
    earlier = [by_attempt.get(number) or UNKNOWN_WORKER for number in range(1, job.attempt)]
    return [*earlier, os.environ.get(WORKER_NAME) or f"{socket.gethostname()}:{os.getpid()}"]


def _as_django_has_it(moment: Any) -> Any:
    from django.conf import settings

    return moment if settings.USE_TZ else timezone.make_naive(moment)
