"""The backend of `django.tasks`: `TASKS = {"default": {"BACKEND": "...django.backend.FaultlineBackend"}}`."""

import re
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.core.checks import CheckMessage
from django.db import connections
from django.utils import timezone

from faultline.bounds import check_queue_name, check_task_name
from faultline.client import traced_send
from faultline.client.bulk import is_due
from faultline.errors import FaultlineError
from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.django.conf import database_alias
from faultline.integrations.django.project import app
from faultline.integrations.django.task_backend.arguments import CallCodec, check_call
from faultline.integrations.django.task_backend.enqueuing import enqueued, found_job
from faultline.integrations.django.task_backend.interface import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    normalize_json,
    task_enqueued,
)
from faultline.integrations.django.task_backend.results import result_of
from faultline.integrations.django.task_backend.task import FaultlineTask, check_transaction, options_of
from faultline.job import JobInfo, NewJob
from faultline.store import calls
from faultline.store.rows import MadeJob

ID_MAX: Final = 2**63 - 1
_ID: Final = re.compile(r"[0-9]{1,19}")


class FaultlineBackend(BaseTaskBackend):
    """Enqueues tasks as jobs, on Django's own connection: a task exists once its transaction commits."""

    task_class = FaultlineTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def validate_task(self, task: Task) -> None:
        """Whether it can be a job; from here on workers of this process know it."""
        super().validate_task(task)
        try:
            check_task_name(task.module_path)
            check_queue_name(task.queue_name)
            self._job(task, "{}")
            check_transaction(task)
            app.registry.declare(task, self.options)
        except FaultlineError as error:
            raise InvalidTask(str(error)) from error

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Put a job in its queue in the present transaction, or at once where there is none."""
        self.validate_task(task)
        check_call(task, args, kwargs)
        args, kwargs = normalize_json(list(args)), normalize_json(dict(kwargs))
        new = self._job(task, CallCodec(task.module_path).encode(tuple(args), kwargs, self._backend_of(task)))
        carrier = DjangoCarrier(connections[database_alias()])
        found: list[JobInfo] = []

        def carry(new: NewJob) -> MadeJob:
            found.append(enqueued(carrier, new))
            return MadeJob(found[0].id, True)

        traced_send.send(new, carry)
        if is_due(new):
            carrier.after_commit(partial(app._sender.hint, new.queue))
        result = result_of(found[0], self.alias, task, args, kwargs, [])
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """The task of this id as it stands now."""
        job_id = int(result_id) if _ID.fullmatch(str(result_id)) else 0
        carrier = DjangoCarrier(connections[database_alias()])
        info = found_job(carrier, job_id) if 0 < job_id <= ID_MAX else None
        task = None if info is None else app.registry.declared(info.task)
        if info is None or task is None:
            raise TaskResultDoesNotExist(result_id)
        entries = carrier.run(calls.history(job_id)) if info.token else []
        return result_of(info, self.alias, task, None, None, entries)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """The errors of this backend's settings."""
        from faultline.integrations.django.checks import faults_of_backend

        return faults_of_backend(self)

    def _job(self, task: Task, args: str) -> NewJob:
        return NewJob(
            task=task.module_path,
            args=args,
            queue=task.queue_name,
            priority=-int(task.priority),  # of Django's the highest runs first, of ours the lowest
            run_at=_moment(task.run_after),
            **options_of(task, self.options),
        )

    def _backend_of(self, task: Task) -> str | None:
        """The alias, where the task as it is imported names another one."""
        declared = app.registry.declared(task.module_path)
        return None if declared is None or declared.backend == self.alias else self.alias


def _moment(run_after: datetime | None) -> datetime | None:
    """With a zone, as PostgreSQL needs it; without USE_TZ Django's have none."""
    if run_after is None or timezone.is_aware(run_after):
        return run_after
    aware: datetime = timezone.make_aware(run_after)
    return aware
