"""The names of `django.tasks` (Django 6), or of `django_tasks`, which is the same for Django 5.2."""

from importlib import import_module
from typing import Any

from faultline.errors import ConfigError


def _package() -> str:
    for name in ("django.tasks", "django_tasks"):
        try:
            import_module(name)
        except ModuleNotFoundError:
            continue
        return name
    raise ConfigError(
        "this Django has no django.tasks: it comes with Django 6, or with `pip install django-tasks`"
    )


PACKAGE = _package()
_base, _errors, _signals = (import_module(f"{PACKAGE}.{name}") for name in ("base", "exceptions", "signals"))

BaseTaskBackend: Any = import_module(f"{PACKAGE}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
normalize_json: Any = _base.normalize_json
InvalidTask: Any = getattr(_errors, "InvalidTask", None) or _errors.InvalidTaskError
TaskResultDoesNotExist: Any = _errors.TaskResultDoesNotExist
TaskResultMismatch: Any = _errors.TaskResultMismatch
task_enqueued: Any = _signals.task_enqueued
task_started: Any = _signals.task_started
task_finished: Any = _signals.task_finished
task: Any = _base.task
task_backends: Any = import_module(PACKAGE).task_backends
