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
def current() -> str:
    """Functions and views, always made anew: the clock, what stands on it, the verbs, their settings."""
    root = files("faultline.sql")
    functions = dict(_read("functions"))
    clock = functions.pop("now.sql")
    views = [sql for _, sql in _read("views")]
    parts = [
        root.joinpath("first.sql").read_text(), clock, *views, *functions.values(),
        root.joinpath("last.sql").read_text(),
    ]  # fmt: skip
    return "\n".join(parts)


@cache
def fingerprint() -> str:
    """Tells whether a database has these very functions and views."""
    return hashlib.sha256(current().encode()).hexdigest()[:16]
