"""Change one function in a database of one's own: to break a promise on purpose, or to stop inside a verb."""

from typing import Any

import psycopg

Edit = tuple[str, str, str]
"""A function, what its source says, and what it says instead."""


def rewrite(dsn: str, function: str, old: str, new: str) -> None:
    """Put `new` where the shipped source of a function says `old`; loud when it does not say it once."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(rewritten(shipped_source(conn, function), (function, old, new)).encode())


def rewritten(source: str, *edits: Edit) -> str:
    """The source with these edits made, each in the one place where it applies."""
    for function, old, new in edits:
        found = source.count(old)
        if found != 1:
            raise LookupError(
                f"faultline.{function} says {old!r} {found} times, not once: mend the rewriting"
            )
        source = source.replace(old, new)
    return source


def shipped_source(conn: psycopg.Connection[Any], function: str) -> str:
    """`create or replace function ...`, as the database holds it."""
    (source,) = conn.execute(
        "select pg_get_functiondef(('faultline.' || %s)::regproc)", [function]
    ).fetchone() or ("",)
    return str(source)
