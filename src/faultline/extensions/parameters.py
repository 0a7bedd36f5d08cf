"""The parameters of a handler that the worker fills: a transaction, and resources. The rest are arguments."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from faultline.errors import ConfigError
from faultline.extensions.transactions import MARK, colours, is_async_session, is_session

if TYPE_CHECKING:
    from faultline.extensions.app_extensions import AppExtensions


class _Injected:
    """The type of `injected`."""

    def __repr__(self) -> str:
        return "injected"


injected: Final[Any] = _Injected()
"""The default of a parameter that is a resource, so that a type checker does not ask for it in `enqueue`.

    @app.task
    async def greet(name: str, client: Client = injected) -> None: ...
"""


@dataclass(frozen=True, slots=True)
class Injection:
    """What the worker adds to a call of a handler."""

    transaction: Any = None
    """The type of its transaction, or the name of one that is not a parameter, such as "django"."""
    in_call: bool = False
    """Whether the handler has a parameter for the transaction: the first one, or the one after `job`."""
    resources: tuple[tuple[str, Any], ...] = ()
    """Parameters and their types."""


def injection_of(
    task: str,
    parameters: Mapping[str, inspect.Parameter],
    is_async: bool,
    option: bool | str,
    extensions: "AppExtensions",
) -> tuple[Injection | None, dict[str, inspect.Parameter]]:
    """What to inject into a handler whose parameters (without `job`) these are, and its arguments.

    >>> from faultline.extensions import AppExtensions
    >>> def greet(name: str) -> None: ...
    >>> parameters = inspect.signature(greet).parameters
    >>> injection, arguments = injection_of("greet", parameters, False, False, AppExtensions())
    >>> injection, list(arguments)
    (None, ['name'])
    """
    transaction, arguments = _transaction(task, parameters, is_async, extensions)
    resources = [
        (name, bare(parameter.annotation))
        for name, parameter in arguments.items()
        if _is_resource(parameter, extensions)
    ]
    for name, kind in resources:
        _check_resource(task, arguments.pop(name), kind)
    named = option if isinstance(option, str) else None
    if transaction is not None and (named or (option and not hasattr(transaction, MARK))):
        raise ConfigError(
            f"task {task}: transaction={option!r} and the parameter of type {transaction.__qualname__} each "
            "ask for a transaction, and a job commits in one: leave one of them out"
        )
    if transaction is None and not resources and named is None:
        return None, arguments
    return Injection(transaction or named, transaction is not None, tuple(resources)), arguments


def _transaction(
    task: str, parameters: Mapping[str, inspect.Parameter], is_async: bool, extensions: "AppExtensions"
) -> tuple[Any, dict[str, inspect.Parameter]]:
    arguments = dict(parameters)
    found = [
        (place, name, kind)
        for place, (name, parameter) in enumerate(parameters.items())
        if (kind := _kind_of(task, parameter, extensions)) is not None
    ]
    if not found:
        return None, arguments
    if len(found) > 1:
        names = " and ".join(name for _, name, _ in found)
        raise ConfigError(f"task {task}: {names} are both transactions, and a job commits in one")
    ((place, name, kind),) = found
    parameter = arguments.pop(name)
    if place > 0 or parameter.kind not in _BY_POSITION:
        raise ConfigError(
            f"task {task}: `{name}: {kind.__qualname__}` must be the first parameter, or the one after `job`"
        )
    if parameter.default is not inspect.Parameter.empty:
        raise ConfigError(f"task {task}: `{name}` is given by the worker; leave its default out")
    if is_async != _is_async(kind, extensions):
        raise ConfigError(colours(task, kind.__qualname__, of_async=not is_async))
    return kind, arguments


_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _kind_of(task: str, parameter: inspect.Parameter, extensions: "AppExtensions") -> type[Any] | None:
    """The type of a parameter that is a transaction: ours, a registered one, or one that looks like it."""
    hint = bare(parameter.annotation)
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            if _is_transaction(bare(part), extensions):
                raise ConfigError(
                    f"task {task}: `{parameter.name}` may be {part.__qualname__} or something else; a "
                    f"transaction is always given: annotate it `{parameter.name}: {part.__qualname__}`"
                )
        return None
    return hint if _is_transaction(hint, extensions) else None


def _is_transaction(hint: Any, extensions: "AppExtensions") -> bool:
    if not isinstance(hint, type) or hint in extensions.resources:
        return False
    return hasattr(hint, MARK) or hint in extensions.transactions or is_session(hint)


def _is_async(kind: type[Any], extensions: "AppExtensions") -> bool:
    if hasattr(kind, MARK):
        return bool(getattr(kind, MARK) == "async")
    provider = extensions.transactions.find(kind)
    return is_async_session(kind) if provider is None else provider.is_async


def _is_resource(parameter: inspect.Parameter, extensions: "AppExtensions") -> bool:
    return parameter.default is injected or bare(parameter.annotation) in extensions.resources


def _check_resource(task: str, parameter: inspect.Parameter, kind: Any) -> None:
    if parameter.annotation is Any:
        raise ConfigError(f"task {task}: `{parameter.name}` is a resource, and says no type; annotate it")
    if parameter.default not in (injected, inspect.Parameter.empty):
        raise ConfigError(
            f"task {task}: `{parameter.name}` is a resource of type {kind!r}, which the worker gives; its "
            "default can only be `injected`"
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ConfigError(f"task {task}: `{parameter.name}` is given by name: remove the `/`")


def bare(hint: Any) -> Any:
    """A hint without its Annotated."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
