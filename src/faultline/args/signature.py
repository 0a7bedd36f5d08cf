"""A handler's signature as a msgspec struct: one field for each argument."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from faultline.args import model_hooks
from faultline.errors import ConfigError

_REFUSED: Final = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, but args are kept by name: remove the `/`",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values, but args are kept by name: take a list",
    inspect.Parameter.VAR_KEYWORD: "takes any name, so nothing could be checked: take a dict",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a handler."""

    name: str
    hint: Any
    required: bool
    by_position: bool

    @property
    def is_text(self) -> bool:
        """Whether it is a `str` and nothing else, or None."""
        return all(_bare(kind) is str for kind in _kinds(self.hint))

    @property
    def is_moment(self) -> bool:
        """Whether it is a `datetime`, or None, and leaves open which kind of."""
        return all(kind is datetime for kind in _kinds(self.hint))


def parameters_of(handler: Callable[..., Any], task: str) -> Mapping[str, inspect.Parameter]:
    """The handler's parameters by name, with string annotations resolved."""
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError, NameError) as error:
        raise ConfigError(f"task {task}: its signature cannot be read: {error}") from None
    # Only the parameters: a return annotation that exists for the type checker alone may stay unresolved.
    annotations = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if parameter.annotation is not inspect.Parameter.empty
    }
    hints = _resolve(annotations, handler, task)
    return {
        name: parameter.replace(annotation=hints.get(name, Any))
        for name, parameter in signature.parameters.items()
    }


def _resolve(annotations: dict[str, Any], handler: Callable[..., Any], task: str) -> dict[str, Any]:
    unwrapped = inspect.unwrap(handler)
    names = getattr(unwrapped, "__globals__", None) or getattr(type(unwrapped).__call__, "__globals__", {})
    try:
        return get_type_hints(SimpleNamespace(__annotations__=annotations), names, include_extras=True)
    except Exception as error:
        raise ConfigError(
            f"task {task}: an annotation cannot be resolved: {error}. Import its types at the top of the "
            "module, outside `if TYPE_CHECKING`"
        ) from None


def arguments_of(parameters: Mapping[str, inspect.Parameter], task: str) -> tuple[Argument, ...]:
    """The arguments of these parameters; refuses those that cannot be kept by name."""
    arguments = []
    for name, parameter in parameters.items():
        if parameter.kind in _REFUSED:
            raise ConfigError(f"task {task}: parameter {name} {_REFUSED[parameter.kind]}")
        # To a type checker `object` is stricter than Any; to JSON both are the same.
        hint = Any if parameter.annotation is object else parameter.annotation
        _check_kind(hint, name, task)
        arguments.append(
            Argument(
                name=name,
                hint=hint,
                required=parameter.default is inspect.Parameter.empty,
                by_position=parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
        )
    return tuple(arguments)


def _check_kind(hint: Any, name: str, task: str) -> None:
    """Refuse a type without a JSON form here, where the task is defined, and not at its first job."""
    try:
        msgspec.json.schema(hint, schema_hook=model_hooks.describe)
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(":")
        why = "" if reason.startswith("Generating JSON schema") else f" ({reason})"
        raise ConfigError(
            f"task {task}: argument {name} is annotated {_named(hint)}, which cannot be read back from "
            f"JSON{why}. Use plain types, dataclasses, msgspec structs, TypedDicts or pydantic models; of an "
            "object in the database pass the id. What the worker is to give has the default `injected`, or "
            "is registered before the task"
        ) from None


def _named(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else repr(hint)


def zoned(argument: Argument) -> Argument:
    """The same argument for a caller, who must give a time zone: without one, a moment differs by place."""
    if not argument.is_moment:
        return argument
    kinds = get_args(argument.hint) or (argument.hint,)
    hints = tuple(_ZONED if kind is datetime else kind for kind in kinds)
    return replace(argument, hint=Union[hints])  # noqa: UP007 - made from parts


_ZONED: Final = Annotated[datetime, msgspec.Meta(tz=True)]


def _kinds(hint: Any) -> list[Any]:
    """The alternatives of a hint, without None; never empty."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return [part for part in parts if part is not NoneType] or [NoneType]


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def struct_of(arguments: Iterable[Argument], task: str, *, forbid_unknown: bool) -> type[msgspec.Struct]:
    """The struct whose JSON is the job's args; an omitted argument stays unset, for the default."""
    fields: list[Any] = [
        (argument.name, argument.hint)
        if argument.required
        else (argument.name, Union[argument.hint, UnsetType], UNSET)  # noqa: UP007 - a hint may be any form
        for argument in arguments
    ]
    try:
        return msgspec.defstruct(task, fields, kw_only=True, forbid_unknown_fields=forbid_unknown)
    except Exception as error:
        raise ConfigError(f"task {task}: its signature cannot be a schema: {error}") from None
