"""The tasks of `django.tasks` as a worker finds them: by their path, among what is imported already."""

import sys
from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from types import MappingProxyType
from typing import Any

from django.utils.module_loading import autodiscover_modules

from faultline.integrations.django.conf import task_modules
from faultline.task import Registry, TaskSpec


class TaskRegistry(Registry):
    """Tasks made with `@app.task`, and those of `django.tasks`, by their path.

    A name that came with a job is never imported: only modules that the project names are, its apps' `tasks`
    and FAULTLINE["TASK_MODULES"].
    """

    def __init__(self) -> None:
        super().__init__()
        self._declared: dict[str, Any] = {}
        self._discovered = False

    def declare(self, task: Any, defaults: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Know a task of `django.tasks` by its path; its first form counts, and not what `using` makes of it.

        `defaults`: the OPTIONS of its backend.
        """
        from faultline.integrations.django.task_backend.handlers import spec_of_task

        path = task.module_path
        known = self._declared.get(path)
        if known is None or known.func is not task.func:
            self._specs[path] = spec_of_task(task, defaults, self.extensions)
            self._declared[path] = task

    def declared(self, path: str) -> Any:
        """The task of `django.tasks` at this path; None when no imported module has one."""
        if path not in self._declared:
            self._look(path)
        if path not in self._declared and not self._discovered:
            self.discover()
            self._look(path)
        return self._declared.get(path)

    def discover(self) -> None:
        """Import the modules in which the project keeps its tasks."""
        self._discovered = True
        autodiscover_modules("tasks")
        for name in task_modules():
            import_module(name)
        self._declare_imported()

    def get(self, name: str) -> TaskSpec | None:
        """The task of this name, or None."""
        if name not in self._specs:
            self._look(name)
        return self._specs.get(name)

    def find(self, name: str) -> TaskSpec:
        """The task of this name, or UnknownTask."""
        self.get(name)
        return super().find(name)

    def _declare_imported(self) -> None:
        """Know the tasks that other backends declared: `using(backend=...)` may send them here."""
        if "faultline.integrations.django.backend" not in sys.modules:
            return
        from faultline.integrations.django.task_backend.interface import Task

        for module in list(sys.modules.values()):
            for found in list(getattr(module, "__dict__", {}).values()):
                # By its type: isinstance() would set up lazy objects, such as settings.
                if issubclass(type(found), Task) and found.module_path not in self._declared:
                    self.declare(found)

    def _look(self, path: str) -> None:
        """A task that another backend declared, and `using(backend=...)` sent here."""
        if "faultline.integrations.django.backend" not in sys.modules:
            return  # no backend of ours is in TASKS: the project may not even have django.tasks
        from faultline.integrations.django.task_backend.interface import Task

        parts = path.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = sys.modules.get(".".join(parts[:cut]))
            if module is not None:
                found = _inside(module, parts[cut:])
                if issubclass(type(found), Task) and found.module_path == path:
                    self.declare(found)
                return


def _inside(module: Any, names: list[str]) -> Any:
    return reduce(lambda at, name: getattr(at, name, None), names, module)
