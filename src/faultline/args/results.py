"""A stored result, read back with the type of the handler's annotation."""

import inspect
from collections.abc import Callable
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from faultline.args import model_hooks
from faultline.errors import BadDocument
from faultline.outcome import HANDLER_OUTCOMES


class ResultReader:
    """Reads results of one task; a handler without a usable return annotation gets plain JSON values.

    >>> from datetime import date
    >>> def due(order_id: int) -> date: ...
    >>> ResultReader(due).read("2026-01-01")
    datetime.date(2026, 1, 1)
    """

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._handler = handler
        self._kind: Any = msgspec.UNSET

    def read(self, document: Any) -> Any:
        """The value of this JSON, or BadDocument when it is of another shape."""
        if self._kind is msgspec.UNSET:
            self._kind = _usable(_returned(self._handler))
        try:
            return msgspec.convert(document, type=self._kind, dec_hook=model_hooks.load, str_keys=True)
        except Exception as error:
            raise BadDocument(
                f"the result does not fit the handler's return annotation: {str(error)[:300]}. "
                "Read it as it is with info().result"
            ) from None


def _returned(handler: Callable[..., Any]) -> Any:
    unwrapped = inspect.unwrap(handler)
    function = unwrapped if hasattr(unwrapped, "__globals__") else type(unwrapped).__call__
    annotations = {"return": getattr(function, "__annotations__", {}).get("return", Any)}
    names = getattr(function, "__globals__", {})
    try:
        return get_type_hints(SimpleNamespace(__annotations__=annotations), names, include_extras=True)[
            "return"
        ]
    except Exception:  # an annotation for the type checker alone: plain JSON values are used
        return Any


def _usable(hint: Any) -> Any:
    """The annotation without the outcomes that a handler may return; Any if JSON cannot hold it.

    Any for None too: a handler that settles by `job.complete(result=...)` returns nothing itself.
    """
    if hint in HANDLER_OUTCOMES or hint is NoneType:
        return Any
    if get_origin(hint) in (Union, UnionType):
        kept = tuple(part for part in get_args(hint) if part not in HANDLER_OUTCOMES)
        hint = Union[kept] if kept else Any  # noqa: UP007 - made from parts
    try:
        msgspec.json.schema(hint, schema_hook=model_hooks.describe)
    except Exception:
        return Any
    return hint
