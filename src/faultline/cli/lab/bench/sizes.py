"""A scenario's size on the command line: an option for each of its fields."""

import dataclasses
from typing import Any

import click

from faultline.cli.options import parsed
from faultline.errors import InputError
from faultline.lab.bench.scenario import BenchScenario

SEVERAL: str = "a,b,..."


def size_options(scenario: BenchScenario) -> list[click.Parameter]:
    """One option a field; a field without its option keeps its default."""
    return [
        _option(field.name, getattr(scenario.full, field.name)) for field in dataclasses.fields(scenario.full)
    ]


def size_of(scenario: BenchScenario, quick: bool, asked: dict[str, Any]) -> Any:
    """The size that was asked for."""
    given = {name: value for name, value in asked.items() if value is not None}
    return dataclasses.replace(scenario.quick if quick else scenario.full, **given)


def _option(name: str, default: Any) -> click.Option:
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    kind = parsed(SEVERAL if isinstance(default, tuple) else "n", lambda text: _read(text, default))
    return click.Option([f"--{name.replace('_', '-')}", name], type=kind, help=f"[default: {shown}]")


def _read(text: str, default: Any) -> Any:
    """A value of the default's kind; several with commas between them."""
    if isinstance(default, tuple):
        return tuple(_read(part, default[0]) for part in text.split(","))
    try:
        value = type(default)(text.strip())
    except ValueError:
        raise InputError(f"{text[:60]!a} is not a number") from None
    if not isinstance(value, str) and not 0 <= value <= 100_000_000:
        raise InputError(f"{text[:60]!a} is not from 0 to 100,000,000")
    return value
