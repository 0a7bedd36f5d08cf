"""`@app.task`, in a form that type checkers understand.

The overloads read the handler's signature: whether `job: Job` comes first, and whether it must be
awaited. What is left is what `enqueue` takes, and what `result` gives. One limit: where `job: Job` comes
first and another parameter is annotated with an explicit `Any`, mypy finds two overloads that fit and
checks none; `object` instead of `Any` keeps the check.
"""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, final, overload

from faultline.client.sender import Sender
from faultline.client.tasks import Task
from faultline.job import Job
from faultline.retry import Retry, RetryPolicy
from faultline.task import Registry, Run, spec_of

P = ParamSpec("P")
R = TypeVar("R")


@final
class _Nobody:
    """No value is one of these. Who takes it takes anything, and so does not ask for the job."""


class Decorate:
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
    def __call__(self, handler: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Job, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> Task[P, R]: ...
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
        transaction: bool = False,
        forbid_unknown: bool = True,
    ) -> "Decorate": ...

    def __call__(self, *handler: Any, **options: Any) -> Any:
        """Register the handler, or remember the options for the handler that follows."""
        if not handler:
            return Decorate(self._registry, self._sender, self._options | options)
        (function,) = handler
        return Task(self._registry.add(spec_of(function, **self._options, **options)), self._sender)
