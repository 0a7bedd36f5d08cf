"""Middleware: functions around every run of a handler, and around every job that is made to be enqueued."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from faultline.bounds import check_queue_name
from faultline.errors import ConfigError, InputError
from faultline.job import Job, NewJob

AsyncMiddleware = Callable[[Job, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""`async def around(job, call): return await call()`: around async handlers."""
PlainMiddleware = Callable[[Job, Callable[[], Any]], Any]
"""`def around(job, call): return call()`: around plain handlers, in their thread or process."""
EnqueueMiddleware = Callable[[NewJob], NewJob]

M = TypeVar("M", bound=Callable[..., Any])


class MiddlewareChain:
    """The middleware of one app; the first registered is the outermost.

    >>> chain = MiddlewareChain()
    >>> def twice(job, call): return call() * 2
    >>> def plus_one(job, call): return call() + 1
    >>> _ = chain.add(twice), chain.add(plus_one)
    >>> chain.around(None, lambda: 20)()
    42
    """

    def __init__(self) -> None:
        self.of_runs: list[Callable[..., Any]] = []
        self.of_enqueues: list[EnqueueMiddleware] = []

    def add(self, middleware: M) -> M:
        """Put a function around runs: async ones around async handlers, plain ones around plain ones."""
        self.of_runs.append(_checked(middleware, 2, "@app.middleware", "job and call"))
        return middleware

    def add_to_enqueues(self, middleware: EnqueueMiddleware) -> EnqueueMiddleware:
        """Have each job pass through a function before it is sent."""
        if _is_async(middleware):
            raise ConfigError(
                "@app.enqueue_middleware goes on a plain function: enqueue has a plain form too"
            )
        self.of_enqueues.append(_checked(middleware, 1, "@app.enqueue_middleware", "the new job"))
        return middleware

    def around(self, job: Job, call: Callable[[], Any]) -> Callable[[], Any]:
        """A plain call with the plain middleware around it."""
        for middleware in reversed(self.of_runs):
            if not _is_async(middleware):
                call = _bound(middleware, job, call)
        return call

    def aaround(self, job: Job, call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        """An async call with the async middleware around it."""
        for middleware in reversed(self.of_runs):
            if _is_async(middleware):
                call = _bound(middleware, job, call)
        return call

    def wraps(self, is_async: bool) -> bool:
        """Whether any of it is for async handlers, or for plain ones."""
        return any(_is_async(middleware) is is_async for middleware in self.of_runs)

    def gaps(self, tasks: Iterable[tuple[str, bool]]) -> list[str]:
        """A sentence where middleware of one kind leaves tasks of the other kind unwrapped, by accident."""
        said = []
        for is_async in (True, False):
            left = sorted(name for name, of_async in tasks if of_async is is_async)
            names = ", ".join(_named(each) for each in self.of_runs if _is_async(each) is not is_async)
            if names and left and not self.wraps(is_async):
                here, there = ("plain", "async") if is_async else ("async", "plain")
                more = f" and {len(left) - 5} more" if len(left) > 5 else ""
                said.append(
                    f"middleware {names} is {here} and does not run around {there} tasks: "
                    f"{', '.join(left[:5])}{more}. Register a form for those as well"
                )
        return said

    def enqueued(self, new: NewJob) -> NewJob:
        """The job that is sent in place of this one."""
        for middleware in self.of_enqueues:
            changed = middleware(new)
            _check_changed(middleware, new, changed)
            new = changed
        return new


def _bound(middleware: Callable[..., Any], job: Job, call: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: middleware(job, call)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _checked(function: M, parameters: int, decorator: str, takes: str) -> M:
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"{decorator} goes on a function that takes {takes}, not on {function!r}")
    try:
        inspect.signature(function).bind(*range(parameters))
    except TypeError as error:
        raise ConfigError(f"{decorator}: {_named(function)} has to take {takes}: {error}") from None
    return function


def _named(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", repr(function)))


def _check_changed(middleware: Callable[..., Any], new: NewJob, changed: object) -> None:
    name = _named(middleware)
    if not isinstance(changed, NewJob):
        raise InputError(f"enqueue middleware {name} has to return a NewJob, not {type(changed).__name__}")
    if changed.task != new.task:
        raise InputError(
            f"enqueue middleware {name} made task {changed.task!r} of {new.task}; the arguments were checked "
            "for that one: enqueue the other task instead"
        )
    check_queue_name(changed.queue)
