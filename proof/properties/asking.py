"""A property: a sentence that must be true of every value that Hypothesis generates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from proof.properties.ground import PropertyDatabase


@dataclass(frozen=True, slots=True)
class Property:
    """A function that asserts, what it is asked with, and whether it needs a database."""

    name: str
    asserts: Callable[..., None]
    values: dict[str, st.SearchStrategy[Any]]
    on_database: bool

    def ask(self, ground: PropertyDatabase, examples: int, *, with_seed: int = 0, **how: Any) -> None:
        """Ask it that often; raises with the smallest values for which it is not true."""
        where = (ground,) if self.on_database else ()

        @seed(with_seed)
        @chosen(examples, **how)
        @given(st.data())
        def once(data: st.DataObject) -> None:
            self.asserts(*where, **{name: data.draw(value, name) for name, value in self.values.items()})

        once()


def chosen(examples: int, **more: Any) -> settings:
    """The settings of every run: no deadline (the machine may be busy), no folder of old examples."""
    return settings(
        max_examples=examples, deadline=None, database=None, print_blob=False,
        suppress_health_check=list(HealthCheck), **more,
    )  # fmt: skip


def asked(
    *, on_database: bool = False, **values: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Property]:
    """Make a property of a function: what it is asked with, by the names of its parameters."""

    def make(asserts: Callable[..., None]) -> Property:
        return Property(asserts.__name__.replace("_", " "), asserts, values, on_database)

    return make
