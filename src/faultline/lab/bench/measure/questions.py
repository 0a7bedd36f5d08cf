"""What the bench asks the database: one SQL file a question, answered as a dictionary."""

from functools import cache
from importlib.resources import files
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

Row = dict[str, Any]


@cache
def _source(name: str) -> bytes:
    return files("faultline.lab.bench").joinpath("sql", f"{name}.sql").read_bytes()


def ask_all(conn: Connection[Any], question: str, **args: Any) -> list[Row]:
    """All rows of an answer."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(_source(question), args or None).fetchall()


def ask(conn: Connection[Any], question: str, **args: Any) -> Row:
    """The one row of an answer; nothing in it when there is none."""
    rows = ask_all(conn, question, **args)
    return rows[0] if rows else {}
