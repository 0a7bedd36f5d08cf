"""A task of `django.tasks` with the options of a job: `@task(max_attempts=3, transaction=True)`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

from faultline import bounds
from faultline.errors import ConfigError
from faultline.integrations.django.task_backend.interface import Task
from faultline.retry import Retry, RetryPolicy
from faultline.task import MAX_ATTEMPTS, Run
from faultline.text.suggest import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultlineTask(Task):
    """What the decorator `task` makes with this backend; None: as the backend's OPTIONS say."""

    max_attempts: int | None = None
    """Attempts in all, crashes of a worker included; 10 by default."""
    retry: RetryPolicy | Retry | None = None
    timeout: timedelta | None = None
    lease_for: timedelta | None = None
    transaction: bool | None = None
    """Run a plain task inside `transaction.atomic()`: its rows and its success commit together."""
    run: Run | None = None
    """`process` for work that computes, or may have to be killed."""
    key: str | None = None
    """Two enqueues with one key are one task, for `key_for` after its end (a day by default)."""
    key_for: timedelta | None = None

    def __new__(cls, *_: Any, **options: Any) -> "FaultlineTask":
        """ConfigError for an option that is none, before `__init__` calls it an unexpected argument."""
        known = [each.name for each in fields(cls)]
        for name in options:
            if name not in known:
                hint = did_you_mean(name, known) or f": it takes {', '.join(known)}"
                raise ConfigError(f"@task has no option {name!r}{hint}")
        made: FaultlineTask = object.__new__(cls)
        return made

    def using(self, **changes: Any) -> "FaultlineTask":
        """The same task with other options: those of Django's `using`, and those above."""
        ours = {name: changes.pop(name) for name in PER_JOB if changes.get(name) is not None}
        chosen: FaultlineTask = replace(Task.using(self, **changes), **ours)
        return chosen


PER_JOB: Final = ("max_attempts", "timeout", "lease_for", "key", "key_for")
OF_HANDLER: Final = ("retry", "transaction", "run")
OPTIONS: Final = ("max_attempts", "timeout", "lease_for", *OF_HANDLER)
"""Those that a backend's OPTIONS may give for all of its tasks."""

_CHECKS: Final[dict[str, Callable[[Any], object]]] = {
    "max_attempts": bounds.check_max_attempts,
    "timeout": bounds.check_timeout,
    "lease_for": bounds.check_lease_for,
    "key": bounds.check_key,
    "key_for": lambda value: bounds.check_delay(value, "key_for"),
}


def options_of(task: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one job; BadName or OutOfBounds for one that cannot be."""
    options = {name: option(task, name, defaults) for name in PER_JOB}
    for name, check in _CHECKS.items():
        if options[name] is not None:
            check(options[name])
    if options["max_attempts"] is None:
        options["max_attempts"] = MAX_ATTEMPTS
    return options


def option(task: Any, name: str, defaults: Mapping[str, Any]) -> Any:
    """One option: the task's own, or the backend's. A task that another backend declared has none."""
    own = getattr(task, name, None)
    return defaults.get(name) if own is None else own


def check_options(options: Mapping[str, Any]) -> None:
    """ConfigError for a name in OPTIONS that is no option."""
    for name in options:
        if name not in OPTIONS:
            hint = did_you_mean(str(name), OPTIONS) or f": it takes {', '.join(OPTIONS)}"
            raise ConfigError(f"OPTIONS has no {name!r}{hint}")


def check_transaction(task: Any) -> None:
    """ConfigError for `transaction=True` on an async task: Django's transactions are for plain code."""
    if getattr(task, "transaction", None) and inspect.iscoroutinefunction(task.func):
        raise ConfigError(
            f"task {task.module_path} is async, and transaction=True is for plain tasks: write `def`, or "
            "leave it out"
        )
