"""`@app.task`, in a form that type checkers understand.

The overloads read the handler's signature: whether `job: Job` comes first, whether a transaction comes
first or after it, and whether it must be awaited. What is left is what `enqueue` takes, and what `result`
gives. Two limits: a first argument of type `Any` or `object` could be a transaction, so no arguments of such
a task are checked; and where another parameter is annotated with an explicit `Any`, mypy finds two overloads
that fit and checks none, where `object` keeps the check.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, final, overload

from faultline.batch import BatchItem
from faultline.client.sender import Sender
from faultline.client.session_types import ConnectionLike, SessionLike
from faultline.client.task_client import Task
from faultline.errors import ConfigError
from faultline.job import Job
from faultline.limit import Limit
from faultline.retry import Retry, RetryPolicy
from faultline.task import Registry, Run, spec_of
from faultline.text.suggest import did_you_mean
from faultline.unique import Unique

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
S = TypeVar("S", bound=SessionLike | ConnectionLike)


@final
class _Nobody:
    """No value is one of these. A handler that accepts it accepts any value, and does not ask for the job."""


class TaskDecorator:
    """Makes tasks of functions: bare as `@app.task`, or with options as `@app.task(queue="mail")`."""

    def __init__(self, registry: Registry, sender: Sender, options: dict[str, Any] | None = None) -> None:
        self._registry = registry
        self._sender = sender
        self._options = options or {}

    @overload
    def __call__(
        self, handler: Callable[Concatenate[_Nobody, ...], Coroutine[Any, Any, R]], /
    ) -> Task[..., R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[_Nobody, ...], R], /) -> Task[..., R]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[Job, _Nobody, ...], Coroutine[Any, Any, R]], /
    ) -> Task[..., R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Job, _Nobody, ...], R], /) -> Task[..., R]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[Job, S, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Job, S, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Job, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[S, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[S, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def __call__(
        self,
        *,
        batch: int,
        batch_wait: timedelta = ...,
        name: str | None = None,
        queue: str = ...,
        priority: int = ...,
        max_attempts: int = ...,
        max_crashes: int | None = ...,
        retry: RetryPolicy | Retry | None = None,
        timeout: timedelta | None = None,
        lease_for: timedelta | None = None,
        forbid_unknown: bool = True,
        unique: Unique | None = None,
        expires_in: timedelta | None = None,
    ) -> "BatchDecorator": ...
    @overload
    def __call__(
        self,
        *,
        name: str | None = None,
        queue: str = ...,
        priority: int = ...,
        max_attempts: int = ...,
        max_crashes: int | None = ...,
        retry: RetryPolicy | Retry | None = None,
        timeout: timedelta | None = None,
        lease_for: timedelta | None = None,
        run: Run | None = None,
        transaction: bool | str = False,
        forbid_unknown: bool = True,
        unique: Unique | None = None,
        expires_in: timedelta | None = None,
        limit: Limit | str | None = None,
    ) -> "TaskDecorator": ...

    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Register the handler, or remember the options for the handler that follows."""
        _check_options(options)
        if not handler:
            return TaskDecorator(self._registry, self._sender, self._options | options)
        if len(handler) > 1:
            raise ConfigError("@app.task takes one function; its options have names: @app.task(queue=...)")
        (function,) = handler
        chosen = self._options | options | {"extensions": self._registry.extensions}
        return Task(self._registry.add(spec_of(function, **chosen)), self._sender)


class BatchDecorator(Protocol):
    """Makes a task of a batch handler; its `enqueue` takes the fields of one job's arguments."""

    def __call__(self, handler: Callable[[list[BatchItem[A]]], Any], /) -> Task[..., Any]: ...


_OPTIONS: Final = tuple(
    name for name in inspect.signature(spec_of).parameters if name not in ("handler", "extensions")
)
_ELSEWHERE: Final = {
    "retries": "max_attempts", "max_retries": "max_attempts", "attempts": "max_attempts",
    "lease": "lease_for", "time_limit": "timeout", "backoff": "retry", "retry_policy": "retry",
    "process": "run", "thread": "run",
}  # fmt: skip
"""The names of these in other libraries, or in `using`."""

_PER_JOB: Final = ("key", "key_for", "delay", "run_at")


def _check_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in _OPTIONS:
            continue
        if name in _PER_JOB:
            raise ConfigError(
                f"@app.task has no option {name}: it is a job's own; write .using({name}=...).enqueue(...)"
            )
        meant = _ELSEWHERE.get(name)
        hint = f"; did you mean {meant}?" if meant else did_you_mean(name, _OPTIONS)
        raise ConfigError(
            f"@app.task has no option {name[:60]!a}{hint or '.'} It takes {', '.join(_OPTIONS)}"
        )
