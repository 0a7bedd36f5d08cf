"""A pooled connection lent to a handler: a separate object for the same session, until the loan ends."""

from typing import Any, Final, NoReturn

from psycopg import AsyncConnection, Connection
from psycopg.pq import ConnStatus, TransactionStatus

from faultline.errors import TransactionEnded
from faultline.store.driver.async_connection import AsyncPqConnection, SyncPqConnection

UNSET: Final = object()


class Transaction(AsyncPqConnection):
    """A psycopg connection inside the transaction that completes a job: what async handlers are given.

        @app.task
        async def charge(tx: Transaction, order_id: int) -> int:
            await tx.execute("update orders set paid = true where id = %s", [order_id])
            return order_id

    Begin and end are the worker's; `tx.transaction()` is a savepoint.
    """

    _faultline_transaction = "async"
    _result: Any = UNSET

    @property
    def result(self) -> Any:
        """The result that is committed with the success; may be set in place of returning it."""
        return None if self._result is UNSET else self._result

    @result.setter
    def result(self, value: Any) -> None:
        self._result = value


class SyncTransaction(SyncPqConnection):
    """The same for plain handlers."""

    _faultline_transaction = "plain"
    _result: Any = UNSET

    @property
    def result(self) -> Any:
        """The result that is committed with the success; may be set in place of returning it."""
        return None if self._result is UNSET else self._result

    @result.setter
    def result(self, value: Any) -> None:
        self._result = value


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


def lend(conn: Any) -> Any:
    """Another connection object for the session of a pooled one."""
    lent = object.__new__(Transaction if isinstance(conn, AsyncConnection) else SyncTransaction)
    lent.__dict__.update(conn.__dict__)
    return lent


def end_loan(lent: "Connection[Any] | AsyncConnection[Any]", why: str) -> None:
    """Cut the lent object, its cursors and its savepoints off from the session.

    The next borrower has the session, in its own transaction.
    """
    lent.pgconn = ended = EndedSession(why)  # type: ignore[assignment]
    lent.__dict__["_check_connection_ok"] = ended.refuse  # the driver's own error only says "closed"
    lent.__dict__.pop("_fileno", None)  # the socket that `wait` remembers
