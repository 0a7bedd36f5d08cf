"""Sessions whose server turned read-only: after a failover that closed none of them, or on a full disk."""

from collections.abc import Iterator
from time import monotonic
from typing import Any, Final

from psycopg import AsyncConnection, Connection
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.pq import ConnStatus
from psycopg.pq.abc import PGconn

from faultline.errors import ReadOnlyServer

REPORTED: Final = (b"default_transaction_read_only", b"in_hot_standby")
"""What PostgreSQL 14 and newer tells its clients of, without being asked, with the reply to a command."""

QUESTION: Final = "select current_setting('transaction_read_only') = 'on'"

YOUNG_SECONDS: Final = 1.0
"""Where new sessions are read-only too, none is made more often than this: there is no other server."""

REFUSED: Final = (ReadOnlyServer, ReadOnlySqlTransaction)


class Watched:
    """What a pooled connection knows of itself: since when it is there, and whether it took writes then."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.made_at = monotonic()
        self._began_read_only = self._is_read_only
        self.refuses_writes = False
        """True once a write was refused on it."""

    @property
    def _is_read_only(self) -> bool:
        pgconn: PGconn = self.pgconn  # type: ignore[attr-defined]
        return pgconn.status == ConnStatus.OK and any(
            pgconn.parameter_status(name) == b"on" for name in REPORTED
        )

    @property
    def has_turned(self) -> bool:
        """Whether it took writes when it was made, and its server has said since that it takes none."""
        return not self._began_read_only and self._is_read_only

    @property
    def is_to_be_left(self) -> bool:
        """Whether another session may find a server that takes writes.

        One that was read-only from the start is left as well, since a proxy may have learned by now where the
        primary is; but not at once.
        """
        if self.has_turned:
            return True
        young = self._began_read_only and monotonic() - self.made_at < YOUNG_SECONDS
        return self.refuses_writes and not young


def refused_by_server(error: BaseException) -> bool:
    """Whether a write was refused as read-only, also where a library has wrapped the driver's error."""
    return any(isinstance(one, REFUSED) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def asks_read_only(conn: Connection[Any]) -> bool:
    """Whether the session itself is read-only, and not only the transaction that was refused."""
    return conn.execute(QUESTION, prepare=False).fetchone() == (True,)


async def aasks_read_only(conn: AsyncConnection[Any]) -> bool:
    """The same for the loop."""
    return await (await conn.execute(QUESTION, prepare=False)).fetchone() == (True,)
