"""Hooks: functions that are called when a worker starts and stops, and when attempts end badly."""

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from faultline.errors import ConfigError

H = TypeVar("H", bound=Callable[..., Any])

NONE_GIVEN: Final[Any] = None
"""The default of a hook, so that `@app.on_dead()` is told what to write."""
LIFE: Final = ("startup", "shutdown")
OUTCOMES: Final = ("failed", "dead", "lost")


class JobEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What `on_failed`, `on_dead` and `on_lost` are told.

    >>> JobEvent(name="failed", job_id=7, task="charge", queue="billing", attempt=1, max_attempts=5,
    ...          token=3, error="ValueError: no such order").attempts_left
    4
    """

    name: str
    """failed, dead or lost."""
    job_id: int
    task: str
    queue: str
    attempt: int
    max_attempts: int
    token: int
    error: str | None = None
    """As the ledger has it: the exception with its traceback; None of a lost lease."""

    @property
    def attempts_left(self) -> int:
        """How often it may be tried after this attempt."""
        return max(0, self.max_attempts - self.attempt)


class Hooks:
    """The hooks of one app, in the order in which they were registered.

    >>> hooks = Hooks()
    >>> @hooks.add("dead")
    ... def page(event: JobEvent) -> None: ...
    >>> hooks.of("dead") == [page], hooks.on_outcomes
    (True, True)
    """

    def __init__(self) -> None:
        self._hooks: dict[str, list[Callable[..., Any]]] = {name: [] for name in (*LIFE, *OUTCOMES)}

    def add(self, name: str) -> Callable[[H], H]:
        """A decorator that registers a hook, sync or async."""
        takes = 0 if name in LIFE else 1

        def register(hook: H) -> H:
            if not callable(hook):
                raise ConfigError(f"@app.on_{name} goes on a function: write it without parentheses")
            try:
                inspect.signature(hook).bind(*range(takes))
            except TypeError as error:
                said = "no arguments" if takes == 0 else "a JobEvent"
                raise ConfigError(f"@app.on_{name} goes on a function that takes {said}: {error}") from None
            self._hooks[name].append(hook)
            return hook

        return register

    def of(self, name: str) -> list[Callable[..., Any]]:
        """The hooks of one name."""
        return self._hooks[name]

    @property
    def on_outcomes(self) -> bool:
        """Whether there are any that attempts concern."""
        return any(self._hooks[name] for name in OUTCOMES)
