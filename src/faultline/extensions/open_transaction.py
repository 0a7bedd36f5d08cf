"""Beginning a transaction on a connection or session of any known kind, and seeing whether it is still open.

By what the libraries' objects can do, so that none of them is imported here.
"""

from typing import Any


def is_open(conn: Any) -> bool | None:
    """Whether a transaction is open; None of an object that cannot tell.

    >>> is_open(object()) is None
    True
    """
    if isinstance(atomic := getattr(conn, "in_atomic_block", None), bool):  # Django
        return atomic
    asks = getattr(conn, "in_transaction", None) or getattr(conn, "is_in_transaction", None)
    if callable(asks):  # SQLAlchemy, asyncpg
        return bool(asks())
    status = getattr(getattr(conn, "info", None), "transaction_status", None)
    return None if status is None else bool(status)  # psycopg: IDLE is 0


def begin_on(conn: Any) -> Any:
    """A context manager that begins a transaction, commits it, and rolls it back after an error."""
    begins = getattr(conn, "begin", None) or conn.transaction  # SQLAlchemy; asyncpg and psycopg
    return begins()
