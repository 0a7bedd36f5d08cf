"""Notices a COMMIT or ROLLBACK that was sent as SQL: SQLAlchemy itself does not look at statements."""

from typing import Any, Final
from weakref import WeakSet

from sqlalchemy import event
from sqlalchemy.engine import Connection

_ENDED: Final = "faultline_ended_by_hand"
"""In `conn.info`, which belongs to the session below: whether a statement ended its transaction."""

_watched: Final[WeakSet[Any]] = WeakSet()


def watch(*targets: Any) -> None:
    """Look at each statement of these engines and connections from now on.

    An engine counts for the connections that it makes from then on.
    """
    for target in targets:
        if target not in _watched:
            _watched.add(target)
            event.listen(target, "begin", _begun)
            event.listen(target, "after_cursor_execute", _look)


def was_ended(conn: Connection) -> bool:
    """Whether a statement of its transaction ended it."""
    return bool(conn.info.get(_ENDED))


def is_idle(driver: Any) -> bool:
    """Whether the server has no transaction open, by what a driver's connection knows of its last answer."""
    asks = getattr(driver, "is_in_transaction", None)
    if asks is not None:  # asyncpg
        return not asks()
    return getattr(getattr(driver, "info", None), "transaction_status", None) == 0  # psycopg, psycopg2


def _begun(conn: Connection) -> None:
    conn.info[_ENDED] = False


def _look(conn: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
    if is_idle(conn.connection.driver_connection):
        conn.info[_ENDED] = True
