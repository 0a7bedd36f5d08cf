"""A pooled connection lent to a handler: a separate object for the same session, until the loan ends."""

from typing import Any, Final, NoReturn, overload

from psycopg import AsyncConnection, Connection, ProgrammingError
from psycopg.pq import ConnStatus, TransactionStatus

from faultline.errors import TransactionEnded
from faultline.store.driver.async_connection import AsyncPqConnection, SyncPqConnection

NOT_SET: Final = object()
"""The result of a transaction that was given none; None is a result."""


class CarriesResult:
    """The part of a lent transaction that is no connection: the result of its job."""

    _result: Any = NOT_SET

    @property
    def result(self) -> Any:
        """The job's result, committed with the rows; None until it is set."""
        return None if self._result is NOT_SET else self._result

    @result.setter
    def result(self, value: Any) -> None:
        self._result = value


class Transaction(CarriesResult, AsyncPqConnection):
    """A transaction that completes its job: a psycopg connection, for an async handler.

    `job.complete()` gives it; a parameter of this type is given one that lasts as long as the handler:

        @app.task
        async def charge(tx: Transaction, order_id: int) -> int:
            await tx.execute("update orders set paid = true where id = %s", [order_id])
            return order_id
    """

    _faultline_transaction = "async"

    async def commit(self) -> NoReturn:
        raise _ends_with_its_block("commit")

    async def rollback(self) -> NoReturn:
        raise _ends_with_its_block("rollback")


class SyncTransaction(CarriesResult, SyncPqConnection):
    """The same for a plain handler, which runs in a thread or in a process of its own."""

    _faultline_transaction = "plain"

    def commit(self) -> NoReturn:
        raise _ends_with_its_block("commit")

    def rollback(self) -> NoReturn:
        raise _ends_with_its_block("rollback")


def _ends_with_its_block(act: str) -> ProgrammingError:
    """The driver's own error inside its blocks."""
    return ProgrammingError(
        f"Explicit {act}() forbidden within a Transaction context. (It commits when its block ends, and "
        "rolls back when that raises.)"
    )


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


@overload
def lend(conn: AsyncPqConnection) -> Transaction: ...
@overload
def lend(conn: SyncPqConnection) -> SyncTransaction: ...


def lend(conn: AsyncPqConnection | SyncPqConnection) -> Transaction | SyncTransaction:
    """Another connection object for the session of a pooled one."""
    kind: type[Transaction | SyncTransaction] = (
        Transaction if isinstance(conn, AsyncPqConnection) else SyncTransaction
    )
    lent: Any = object.__new__(kind)
    lent.__dict__.update(conn.__dict__)
    return lent  # type: ignore[no-any-return]


def end_loan(lent: "Connection[Any] | AsyncConnection[Any]", why: str) -> None:
    """Cut the lent object, its cursors and its savepoints off from the session.

    The next borrower has the session, in its own transaction.
    """
    lent.pgconn = ended = EndedSession(why)  # type: ignore[assignment]
    lent.__dict__["_check_connection_ok"] = ended.refuse  # the driver's own error only says "closed"
    lent.__dict__.pop("_watch", None)  # of the session's socket
