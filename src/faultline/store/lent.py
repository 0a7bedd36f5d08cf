"""A pooled connection lent to a handler: a separate object for the same session, until the loan ends."""

from typing import Any, NoReturn, TypeVar

from psycopg import AsyncConnection, Connection
from psycopg.pq import ConnStatus, TransactionStatus

from faultline.errors import TransactionEnded

C = TypeVar("C", bound="Connection[Any] | AsyncConnection[Any]")


class EndedSession:
    """Replaces the session of a lent connection: it is closed, and any other use raises a named error."""

    status = ConnStatus.BAD
    transaction_status = TransactionStatus.UNKNOWN

    def __init__(self, why: str) -> None:
        self._why = why

    def finish(self) -> None:
        """Nothing to close: the session is the pool's."""

    def refuse(self) -> NoReturn:
        raise TransactionEnded(self._why)

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()


def lend(conn: C) -> C:
    """Another connection object for the session of a pooled one."""
    lent = object.__new__(type(conn))
    lent.__dict__.update(conn.__dict__)
    return lent


def end_loan(lent: "Connection[Any] | AsyncConnection[Any]", why: str) -> None:
    """Cut the lent object, its cursors and its savepoints off from the session.

    The next borrower has the session, in its own transaction.
    """
    lent.pgconn = ended = EndedSession(why)  # type: ignore[assignment]
    lent.__dict__["_check_connection_ok"] = ended.refuse  # the driver's own error only says "closed"
    lent.__dict__.pop("_fileno", None)  # the socket that `wait` remembers
