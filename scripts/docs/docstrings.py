"""An extension of griffe, which reads the sources for mkdocstrings: docstrings become Markdown."""

from typing import Any

import griffe

from scripts.docs.markdown import docstring, page, table


class Docstrings(griffe.Extension):
    """Show sessions (`>>>`) as code, and the fields of a class that have no docstring as a table."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = docstring(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        fields = [
            member
            for member in cls.members.values()
            if isinstance(member, griffe.Attribute) and _plain(member)
        ]
        if fields and cls.docstring:
            cls.docstring.value = page(cls.docstring.value, _told(fields))


def _plain(attribute: griffe.Attribute) -> bool:
    return attribute.is_public and not attribute.docstring and "property" not in attribute.labels


def _told(fields: list[griffe.Attribute]) -> str:
    rows = [_row(field) for field in fields]
    if any(default for _, _, default in rows):
        return table(["Attribute", "Type", "Default"], rows)
    return table(["Attribute", "Type"], [row[:2] for row in rows])


def _row(field: griffe.Attribute) -> list[str]:
    """Name, type and default; a value that is merely a parameter of `__init__` is no default."""
    given = field.value is not None and not (
        "class-attribute" not in field.labels and field.annotation is None
    )
    return [f"`{field.name}`", _code(field.annotation), _code(field.value) if given else ""]


def _code(expression: Any) -> str:
    return f"`{expression}`" if expression is not None else ""
