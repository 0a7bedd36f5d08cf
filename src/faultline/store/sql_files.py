"""The shipped SQL files, in the order in which they run."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from faultline.sql.columns import with_columns


class SchemaMigration(NamedTuple):
    """A numbered file of tables: run once, forward only."""

    number: int
    name: str
    sql: str


FUNCTION_FOLDERS: Final = (
    "jobs",
    "leases",
    "queues",
    "limits",
    "schedules",
    "maintenance",
    "access",
    "reads",
)


def _read(folder: str) -> list[tuple[str, str]]:
    root = files("faultline.sql").joinpath(folder)
    found = [(entry.name, entry.read_text()) for entry in root.iterdir() if entry.name.endswith(".sql")]
    return sorted(found)


@cache
def functions() -> tuple[tuple[str, str], ...]:
    """The file of each function and its text, by name."""
    found = (file for folder in FUNCTION_FOLDERS for file in _read(f"functions/{folder}"))
    return tuple(sorted((name, with_columns(sql)) for name, sql in found))


@cache
def migrations() -> tuple[SchemaMigration, ...]:
    return tuple(
        SchemaMigration(int(name[:4]), name.removesuffix(".sql")[5:], sql)
        for name, sql in _read("migrations")
    )


LATEST = migrations()[-1].number


@cache
def first() -> str:
    """Drops functions and views before tables change: a column that a view reads cannot change."""
    return files("faultline.sql").joinpath("first.sql").read_text()


@cache
def current() -> str:
    """Functions and views, which each migration creates again, in the order of their dependencies."""
    made = dict(functions())
    first = [made.pop(name) for name in ("now.sql", "readable.sql", "damage.sql")]  # views use them
    views = [sql for _, sql in _read("views")]
    last = files("faultline.sql").joinpath("last.sql").read_text()
    return "\n".join([*first, *views, *made.values(), last])


@cache
def fingerprint() -> str:
    """A hash that tells whether a database has exactly these functions and views."""
    return hashlib.sha256((first() + current()).encode()).hexdigest()[:16]
