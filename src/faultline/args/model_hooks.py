"""Values msgspec does not know by itself: pydantic models, where pydantic is already in use.

It is never imported from here. If it is not in `sys.modules`, no value can be one of its models.
"""

import sys
from typing import Any

import msgspec

from faultline.bounds import with_article


def is_model(kind: object) -> bool:
    """Whether this is a class of pydantic models."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _a(kind: object) -> str:
    """A kind of value by its name, with the article that goes before it.

    >>> _a(object), _a(complex)
    ('an object', 'a complex')
    """
    return with_article(getattr(kind, "__name__", str(kind)))


def dump(value: Any) -> Any:
    """The JSON value of this value."""
    if is_model(type(value)):
        return value.model_dump(mode="json")
    raise TypeError(f"{_a(type(value))} has no JSON form")


def load(kind: type[Any], document: Any) -> Any:
    """The value of this kind that the document stands for."""
    if not is_model(kind):
        raise TypeError(f"{_a(kind)} has no JSON form")
    try:
        # Through JSON and not from the objects: a strict model takes a date from JSON text only.
        return kind.model_validate_json(msgspec.json.encode(document))
    except ValueError as error:
        raise ValueError(_every_fault(error)) from None


def _every_fault(error: Any) -> str:
    """All errors of pydantic, in one line and without the values: they may be secrets."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)


def describe(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a kind that msgspec does not know."""
    if is_model(kind):
        schema: dict[str, Any] = kind.model_json_schema()
        return schema
    raise NotImplementedError(f"{_a(kind)} has no JSON form")
