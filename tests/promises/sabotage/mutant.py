"""A small breakage of the shipped SQL, and the promise that must turn red when it is made.

A promise whose test stays green without the mechanism behind it proves nothing. So each mechanism is taken
away once, in a database of its own, and the test of the promise is run as it stands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import psycopg

from tests.promises.rewriting import rewrite

Edit = tuple[str, str, str]
"""A function, what its source says, and what it says instead."""

NO_LOCK = ("for no key update;", ";")


@dataclass(frozen=True)
class Mutant:
    """What is broken, and the test that must notice."""

    name: str
    promise: Callable[..., None]
    edits: tuple[Edit, ...] = ()
    statement: str = ""
    given: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Values for the parameters of a parametrized test."""
    needs: tuple[str, ...] = ()
    """Fixtures that the test's module asks for by a mark."""


def sabotage(dsn: str, mutant: Mutant) -> None:
    """Break the test's own database as the mutant says; loud when the source is not as it knows it."""
    for function, old, new in mutant.edits:
        rewrite(dsn, function, old, new)
    if mutant.statement:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(mutant.statement.encode())
