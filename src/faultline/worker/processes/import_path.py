"""Where a child process finds a handler: the name of its module, or the file of the script, and its own name.

The registry imports nothing by name, and neither does this: a worker names the places of its own tasks, and a
child looks there and nowhere else.
"""

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable
from functools import reduce
from types import ModuleType
from typing import Any

import msgspec

from faultline.errors import ConfigError
from faultline.task import TaskSpec

SCRIPT = "__faultline_script__"
"""What a script is called in a child: not `__main__`, so that it does not run as one."""

MAINS = ("__main__", "__mp_main__")
"""The script itself, and what multiprocessing calls it in a process of its own."""

importing = False
"""True in a child while it imports the user's code, which must not start a worker there."""


class ImportPath(msgspec.Struct, frozen=True):
    """A module, by name or by file, and the name of a task in it."""

    module: str
    file: str | None
    name: str


def import_paths_of(tasks: Iterable[TaskSpec]) -> dict[str, ImportPath]:
    """The places of all tasks that run in processes; ConfigError for one that a child could not find."""
    return {spec.name: import_path_of(spec) for spec in tasks if spec.run == "process"}


def import_path_of(spec: TaskSpec) -> ImportPath:
    """Where this task is, checked by going there."""
    handler = spec.handler
    module, name = getattr(handler, "__module__", None), getattr(handler, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        raise _cannot_find(spec, "it is a lambda, or defined inside a function")
    found = _look(sys.modules.get(module), name)
    if getattr(found, "spec", None) is not spec:
        raise _cannot_find(spec, f"{module}.{name} is something else")
    if module in MAINS:
        return _of_script(spec, sys.modules[module], name)
    return ImportPath(module, None, name)


def _of_script(spec: TaskSpec, main: ModuleType, name: str) -> ImportPath:
    known = getattr(main, "__spec__", None)
    if known is not None:  # python -m package.module
        return ImportPath(known.name, None, name)
    file = getattr(main, "__file__", None)
    if file is None:
        raise _cannot_find(spec, "it was typed in at a prompt, and stands in no file")
    return ImportPath(SCRIPT, file, name)


def find(place: ImportPath, task: str) -> TaskSpec:
    """The task at this place, in a child."""
    module = _script(place.file) if place.file is not None else importlib.import_module(place.module)
    spec = getattr(_look(module, place.name), "spec", None)
    if not isinstance(spec, TaskSpec) or spec.name != task:
        raise ConfigError(
            f"task {task} is not at {place.module}.{place.name} when a child process imports it"
        )
    return spec


def suspects_import_path_of(spec: TaskSpec) -> ImportPath:
    """Where a child finds the handler of a suspect, which never asked for a process: so only if it is safe.

    A script that has no guard does its work whenever it is imported, and would do it again.
    """
    place = import_path_of(spec)
    module = sys.modules[spec.handler.__module__]
    if module.__name__ in MAINS and not _is_guarded(module):
        raise ConfigError('its script has no `if __name__ == "__main__":`, so importing it would run it')
    return place


def _is_guarded(script: ModuleType) -> bool:
    try:
        source = inspect.getsource(script)
    except (OSError, TypeError):
        return False
    return re.search(r"^if\s+__name__\s*==", source, re.MULTILINE) is not None


def refuse_a_worker_in_a_child() -> None:
    """A script that starts a worker when it is imported would start one in each child, without end."""
    if importing:
        raise ConfigError(
            "a child process imported this script to find a handler, and the script started a worker; "
            'put what starts it under `if __name__ == "__main__":`'
        )


def _script(file: str) -> ModuleType:
    if SCRIPT in sys.modules:
        return sys.modules[SCRIPT]
    known = importlib.util.spec_from_file_location(SCRIPT, file)
    if known is None or known.loader is None:
        raise ConfigError(f"{file} cannot be imported by a child process; put its tasks in a module")
    module = importlib.util.module_from_spec(known)
    sys.modules[SCRIPT] = module
    try:
        known.loader.exec_module(module)
    except BaseException:
        del sys.modules[SCRIPT]
        raise
    return module


def _look(module: ModuleType | None, name: str) -> Any:
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), module)


def _cannot_find(spec: TaskSpec, why: str) -> ConfigError:
    return ConfigError(
        f'task {spec.name} has run="{spec.run}", but a child process could not find its handler: {why}. '
        "Decorate a function at the top of a module with @app.task, and keep its name"
    )
