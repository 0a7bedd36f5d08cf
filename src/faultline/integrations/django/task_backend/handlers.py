"""What a worker calls for a job of `django.tasks`: the task, with its signals around it."""

import inspect
from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from faultline.extensions import AppExtensions
from faultline.integrations.django.carrier import DjangoCarrier
from faultline.integrations.django.conf import database_alias
from faultline.integrations.django.task_backend.arguments import CallCodec
from faultline.integrations.django.task_backend.run import TaskRun
from faultline.integrations.django.task_backend.task import option
from faultline.job import Job
from faultline.outcome import HANDLER_OUTCOMES
from faultline.retry import rules_of
from faultline.task import TaskSpec
from faultline.worker.handlers.injected_transactions import ended_by_hand

CHILD_MODULE = "faultline.integrations.django.process"
"""Where a child process finds a task: a module that sets Django up first."""


class TaskHandler:
    """A plain task, in a thread of the worker or in a child process."""

    def __init__(self, task: Any, in_transaction: bool) -> None:
        self.task = task
        self.in_transaction = in_transaction
        self.__module__ = CHILD_MODULE
        self.__name__ = task.func.__name__
        self.__qualname__ = f"tasks.{task.module_path}"

    def __call__(self, job: Job, args: list[Any], kwargs: dict[str, Any], backend: str | None) -> Any:
        run = TaskRun.begin(self.task, job, args, kwargs, backend)
        with run.ended():
            run.value = self._in_transaction(run) if self.in_transaction else run.call()
        return run.value

    def _in_transaction(self, run: TaskRun) -> Any:
        """The task's rows and its success in one transaction of Django."""
        alias = database_alias()
        with transaction.atomic(using=alias, durable=True):
            carrier = DjangoCarrier(connections[alias])
            carrier.watch()
            value = run.call()
            if carrier.was_ended():
                raise ended_by_hand(run.job)
            if isinstance(value, HANDLER_OUTCOMES):
                raise value
            run.job.complete_in(connections[alias], result=value)
        return value


class AsyncTaskHandler:
    """An async task, in the worker's event loop."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.__module__ = CHILD_MODULE
        self.__name__ = task.func.__name__
        self.__qualname__ = f"tasks.{task.module_path}"

    async def __call__(self, job: Job, args: list[Any], kwargs: dict[str, Any], backend: str | None) -> Any:
        run = await self._begun(job, args, kwargs, backend)
        with run.ended():
            run.value = await run.acall()
        return run.value

    async def _begun(self, job: Job, args: list[Any], kwargs: dict[str, Any], backend: str | None) -> TaskRun:
        if job.attempt == 1:
            return TaskRun.begin(self.task, job, args, kwargs, backend)
        return await sync_to_async(TaskRun.begin)(self.task, job, args, kwargs, backend)


def spec_of_task(task: Any, defaults: Mapping[str, Any], extensions: AppExtensions) -> TaskSpec:
    """A task of `django.tasks` as a worker knows it."""
    is_async = inspect.iscoroutinefunction(task.func)
    in_transaction = bool(option(task, "transaction", defaults))
    return TaskSpec(
        name=task.module_path,
        handler=AsyncTaskHandler(task) if is_async else TaskHandler(task, in_transaction),
        takes_job=True,
        is_async=is_async,
        codec=CallCodec(task.module_path),
        queue=task.queue_name,
        retry=rules_of(option(task, "retry", defaults)),
        run=option(task, "run", defaults),
        transaction=in_transaction,
        extensions=extensions,
    )
