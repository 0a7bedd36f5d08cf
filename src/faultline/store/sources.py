"""The SQL files: what is shipped, in the order in which it is run."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Migration(NamedTuple):
    """A numbered file of tables: run once, forward only."""

    number: int
    name: str
    sql: str


def _read(folder: str) -> list[tuple[str, str]]:
    root = files("faultline.sql").joinpath(folder)
    found = [(entry.name, entry.read_text()) for entry in root.iterdir() if entry.name.endswith(".sql")]
    return sorted(found)


@cache
def migrations() -> tuple[Migration, ...]:
    return tuple(
        Migration(int(name[:4]), name.removesuffix(".sql")[5:], sql) for name, sql in _read("migrations")
    )


LATEST = migrations()[-1].number


@cache
def first() -> str:
    """Functions and views go before tables are changed: a column that a view reads cannot be."""
    return files("faultline.sql").joinpath("first.sql").read_text()


@cache
def current() -> str:
    """Functions and views, always made anew: the clock, what stands on it, the verbs, their settings."""
    functions = dict(_read("functions"))
    first = [functions.pop(name) for name in ("now.sql", "readable.sql", "damage.sql")]  # views stand on them
    views = [sql for _, sql in _read("views")]
    last = files("faultline.sql").joinpath("last.sql").read_text()
    return "\n".join([*first, *views, *functions.values(), last])


@cache
def fingerprint() -> str:
    """Tells whether a database has these very functions and views."""
    return hashlib.sha256((first() + current()).encode()).hexdigest()[:16]
