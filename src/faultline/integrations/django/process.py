"""The app without manage.py: `faultline worker faultline.integrations.django.process`.

DJANGO_SETTINGS_MODULE has to be set. The child processes of a worker find its tasks here, too.
"""

import django
from django.apps import apps

if not apps.ready:
    django.setup()

from faultline.integrations.django.project import app
from faultline.integrations.django.task_backend.interface import task_backends
from faultline.task import TaskSpec


class TaskPath:
    """A task by its path: `tasks.shop.tasks.charge` is the task `shop.tasks.charge`."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self._names = names

    def __getattr__(self, name: str) -> "TaskPath":
        if name.startswith("__"):
            raise AttributeError(name)
        return TaskPath((*self._names, name))

    @property
    def spec(self) -> TaskSpec | None:
        """What a child process asks for at the end of the path."""
        return app.registry.get(".".join(self._names))


def load_tasks() -> None:
    """Make the backends, and import the modules of tasks."""
    list(task_backends.all())
    app.registry.discover()


tasks = TaskPath()
load_tasks()

__all__ = ["app", "tasks"]
