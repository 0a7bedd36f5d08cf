"""Sessions that are made as new without a wait: the reply is read by the next borrower."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Generic, TypeVar

from psycopg import AsyncConnection, Connection, Error
from psycopg.abc import PQGen
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

C = TypeVar("C", bound="Connection[Any] | AsyncConnection[Any]")

IDLE_SECONDS = 60.0

SEND_AFTER_SECONDS = 0.001
"""How long the reset of a session of the loop waits for the next BEGIN on it, to go in one message."""

_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class ConnectionsBeingReset(Generic[C]):
    """Connections whose reply to a reset is still to be read, the first to be reset in front.

    The pool counts them as lent: it would close a connection that comes back with a reply to be read.
    """

    def __init__(self) -> None:
        self._conns: deque[tuple[float, C]] = deque()
        self.borrowers: list[None] = []
        """One for each that asks the pool, and so does not look here. A list, since threads share it."""

    def __len__(self) -> int:
        return len(self._conns)

    @contextmanager
    def another(self) -> Iterator[None]:
        """While a borrower asks the pool for another one."""
        self.borrowers.append(None)
        try:
            yield
        finally:
            self.borrowers.pop()

    def add(self, conn: C) -> None:
        self._conns.append((monotonic(), conn))

    def take(self) -> C | None:
        """The one that was reset first: its reply is there most likely."""
        try:
            return self._conns.popleft()[1]
        except IndexError:  # another thread took the last one
            return None

    def take_idle(self) -> C | None:
        """One that was not needed for a while: it goes back to the pool, which closes idle connections."""
        try:
            since, conn = self._conns.popleft()
        except IndexError:
            return None
        if monotonic() - since < IDLE_SECONDS:
            self._conns.appendleft((since, conn))
            return None
        return conn

    def all_due(self) -> list[C]:
        """Those whose reset was not sent yet."""
        return [conn for _, conn in self._conns if getattr(conn, "reset_due", None) is not None]

    def take_all(self) -> list[C]:
        taken = []
        while (conn := self.take()) is not None:
            taken.append(conn)
        return taken


def start_reset(conn: "Connection[Any] | AsyncConnection[Any]", statements: bytes) -> bool:
    """Send them, and wait for nothing; False if the socket did not take them at once."""
    try:
        conn.pgconn.send_query(statements)
        return conn.pgconn.flush() == 0
    except Error:
        return False


def read_what_came(pgconn: PGconn) -> bool | None:
    """Whether each statement succeeded; None if not all replies have come: this waits for none."""
    while not pgconn.is_busy():
        result = pgconn.get_result()
        if result is None:
            while pgconn.notifies():  # heard by the one before
                pass
            return True
        if result.status not in _DONE:
            return False
    return None


def read_the_rest(pgconn: PGconn) -> PQGen[bool]:
    """The same for what has not come yet."""
    results = yield from fetch_many(pgconn)
    return all(result.status in _DONE for result in results)
