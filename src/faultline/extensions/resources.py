"""Resources: what handlers share, such as a client or a pool: opened when first needed, closed at the end."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from faultline.errors import ConfigError
from faultline.extensions.transactions import colours
from faultline.job import Job

Scope = Literal["process", "job"]
"""How long a resource lasts: once for the process of its worker, or once for each job."""

_ASYNC: Final = (AsyncGenerator, AsyncIterator, AbstractAsyncContextManager)
_PLAIN: Final = (Generator, Iterator, AbstractContextManager)


@dataclass(frozen=True, eq=False, slots=True)
class Resource:
    """One resource of an app: its type, and the function that opens and closes it."""

    kind: Any
    make: Callable[..., Any]
    """Gives a context manager."""
    is_async: bool
    scope: Scope
    takes_job: bool
    name: str

    def open(self, job: Job) -> Any:
        """A new context manager of it."""
        return self.make(job) if self.takes_job else self.make()


class Resources:
    """The resources of one app, by their types.

    >>> resources = Resources()
    >>> def client() -> Iterator[dict]:
    ...     yield {}
    >>> resources.add(client).kind
    <class 'dict'>
    """

    def __init__(self) -> None:
        self._by_kind: dict[Any, dict[bool, Resource]] = {}

    def add(self, function: Callable[..., Any], scope: Scope = "process") -> Resource:
        """Register a generator, or a function that gives a context manager."""
        resource = _resource_of(function, scope)
        of_kind = self._by_kind.setdefault(resource.kind, {})
        if resource.is_async in of_kind:
            raise ConfigError(
                f"resource {resource.name}: {_named(resource.kind)} is opened by "
                f"{of_kind[resource.is_async].name} already; a type has one resource for async handlers and "
                "one for plain ones"
            )
        of_kind[resource.is_async] = resource
        return resource

    def __contains__(self, kind: object) -> bool:
        try:
            return kind in self._by_kind
        except TypeError:  # a hint that cannot be hashed is none of them
            return False

    def find(self, kind: Any, is_async: bool) -> Resource | None:
        """The resource of this type for async handlers, or for plain ones."""
        return self._by_kind.get(kind, {}).get(is_async)

    def check(self, task: str, is_async: bool, parameter: str, kind: Any) -> None:
        """ConfigError for a resource that is not there, or is there for the other handlers only."""
        if kind not in self._by_kind:
            raise ConfigError(
                f"task {task}: no resource of type {_named(kind)} is registered, which parameter {parameter} "
                "asks for: write a generator under @app.resource that yields one"
            )
        if is_async not in self._by_kind[kind]:
            raise ConfigError(colours(task, f"the resource {_named(kind)}", of_async=not is_async))


def _resource_of(function: Callable[..., Any], scope: Scope) -> Resource:
    name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"@app.resource goes on a function that yields the resource, not on {function!r}")
    if scope not in ("process", "job"):
        raise ConfigError(f'resource {name}: scope is "process" or "job"; got {scope!r}')
    made = inspect.unwrap(function)
    if inspect.iscoroutinefunction(made):
        raise ConfigError(f"resource {name}: yield it, so that it can be closed, instead of returning it")
    kind, is_async = _kind_of(made, name)
    takes_job = _takes_job(made, name, scope)
    if made is not function:  # under @contextmanager, or @asynccontextmanager, already
        make = function
    elif inspect.isasyncgenfunction(made):
        make = asynccontextmanager(function)
    else:
        make = contextmanager(function) if inspect.isgeneratorfunction(made) else function
    return Resource(kind, make, is_async, scope, takes_job, name)


def _kind_of(made: Callable[..., Any], name: str) -> tuple[Any, bool]:
    """The type of what it yields, read from its return annotation."""
    try:
        hint = get_type_hints(made).get("return")
    except Exception as error:
        raise ConfigError(f"resource {name}: its return annotation cannot be resolved: {error}") from None
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None and isinstance(hint, type) and not inspect.isgeneratorfunction(made):
        is_async = hasattr(hint, "__aenter__")
        if is_async or hasattr(hint, "__enter__"):  # a function that gives an object which is one itself
            return hint, is_async
    if origin not in (*_ASYNC, *_PLAIN) or not parts or parts[0] is Any:
        raise ConfigError(
            f"resource {name}: its return annotation has to name the type of the resource, such as "
            "Iterator[Client] or AsyncIterator[Client]; handlers ask for it by this type"
        )
    return parts[0], origin in _ASYNC


def _takes_job(made: Callable[..., Any], name: str, scope: Scope) -> bool:
    parameters = list(inspect.signature(made).parameters.values())
    if not parameters:
        return False
    hints = get_type_hints(made)
    if len(parameters) == 1 and scope == "job" and hints.get(parameters[0].name) is Job:
        return True
    raise ConfigError(
        f'resource {name}: it takes no parameters; with scope="job" it may take `job: Job` alone'
    )


def _named(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)
