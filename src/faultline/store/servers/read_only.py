"""Sessions whose server has turned read-only, after a failover that kept them open or on a full disk."""

import math
from collections.abc import Iterator
from time import monotonic
from typing import Any, Final

from psycopg import AsyncConnection, Connection
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.pq import ConnStatus
from psycopg.pq.abc import PGconn

from faultline.errors import ReadOnlyServer

REPORTED: Final = (b"default_transaction_read_only", b"in_hot_standby")
"""Parameters whose changes PostgreSQL 14 and newer reports with the reply to a command."""

QUESTION: Final = "select current_setting('transaction_read_only') = 'on'"

YOUNG_SECONDS: Final = 1.0
"""The minimum age at which a read-only session is replaced: the new ones may be read-only too."""

RECENT_SECONDS: Final = 60.0

REFUSED: Final = (ReadOnlyServer, ReadOnlySqlTransaction)


class WritableCheck:
    """Records when a pooled connection was made, and whether its server took writes then."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.made_at = monotonic()
        self._began_read_only = self._is_read_only
        self.refuses_writes = False
        """True after a write was refused on it."""

    @property
    def _is_read_only(self) -> bool:
        pgconn: PGconn = self.pgconn  # type: ignore[attr-defined]
        by_default, in_standby = REPORTED  # one by one: each call asks, and a generator would cost it 1 us
        return pgconn.status == ConnStatus.OK and (
            pgconn.parameter_status(by_default) == b"on" or pgconn.parameter_status(in_standby) == b"on"
        )

    @property
    def has_turned(self) -> bool:
        """Whether its server took writes when it was made, and reports now that it takes none."""
        return not self._began_read_only and self._is_read_only

    @property
    def is_to_be_left(self) -> bool:
        """Whether a new session may find a server that takes writes.

        A session that was read-only from the start is replaced too, but not at once: a proxy may know the
        primary by then.
        """
        if self.has_turned:
            return True
        if not self.refuses_writes:
            return False
        return not (self._began_read_only and monotonic() - self.made_at < YOUNG_SECONDS)


class LastLeft:
    """When a pool last left a server that takes no writes: no older connection is used again.

    Draining the pool is not enough: a connection that was being made took writes when it was made, and
    reaches the pool afterwards.
    """

    def __init__(self) -> None:
        self._at = -math.inf

    def leave_with(self, conn: WritableCheck) -> bool:
        """Whether the pool is to be drained because of a connection that comes back."""
        if self.is_after(conn) or not conn.is_to_be_left:
            return False
        self._at = monotonic()
        return True

    @property
    def is_recent(self) -> bool:
        """Whether connections to that server may still reach the pool, which closes those it lends."""
        return monotonic() - self._at < RECENT_SECONDS

    def is_after(self, conn: WritableCheck) -> bool:
        """Whether a server was left since the connection was made."""
        return conn.made_at <= self._at


def refused_by_server(error: BaseException) -> bool:
    """Whether a write was refused as read-only, even if a library has wrapped the driver's error."""
    return any(isinstance(one, REFUSED) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def asks_read_only(conn: Connection[Any]) -> bool:
    """Whether the session is read-only, not only the refused transaction."""
    return conn.execute(QUESTION, prepare=False).fetchone() == (True,)


async def aasks_read_only(conn: AsyncConnection[Any]) -> bool:
    """The same for async code."""
    return await (await conn.execute(QUESTION, prepare=False)).fetchone() == (True,)
