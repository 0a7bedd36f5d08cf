"""Whether an app's own transaction is in the database of the job's lease: asked once of each maker."""

from typing import Any, Final

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.rows import tuple_row

from faultline.errors import ConfigError
from faultline.extensions import TransactionProvider
from faultline.store import calls
from faultline.store.driver.connect import aconnect, connect
from faultline.store.pool import AsyncStore, Store

IDENTITY: Final = "select faultline.database_identity()"

NOT_INSTALLED: Final = ("3F000", "42883")
"""No such schema, no such function: Faultline is not in that database."""


class DatabaseCheck:
    """Compares identities; without a DSN, where a worker knows a server only, there is nothing to compare.

    The connections of one maker have one address, so one of them speaks for all. Should another lead
    elsewhere, the fence refuses it as well, only with other words.
    """

    def __init__(self, dsn: str | None) -> None:
        self._dsn = dsn
        self._ours: str | None = None
        self._same: set[TransactionProvider] = set()

    async def acheck(self, provider: TransactionProvider, conn: Any, task: str) -> None:
        """ConfigError where a connection of this provider is to another database."""
        if self._dsn is None or provider in self._same:
            return
        if self._ours is None:
            async with await aconnect(self._dsn) as own:
                self._ours = await AsyncStore.run_in(own, calls.database_identity())
        try:
            theirs = await _aidentity(conn)
        except Exception as error:
            _raise_unless_not_installed(error)
            theirs = None
        self._compare(provider, theirs, task)

    def check(self, provider: TransactionProvider, conn: Any, task: str) -> None:
        """The same for a plain connection."""
        if self._dsn is None or provider in self._same:
            return
        if self._ours is None:
            with connect(self._dsn) as own:
                self._ours = Store.run_in(own, calls.database_identity())
        try:
            theirs = _identity(conn)
        except Exception as error:
            _raise_unless_not_installed(error)
            theirs = None
        self._compare(provider, theirs, task)

    def _compare(self, provider: TransactionProvider, theirs: str | None, task: str) -> None:
        if theirs != self._ours:
            raise ConfigError(
                f"the transaction of task {task} is in another database than its job, so the two cannot "
                "commit together; nothing was run: give its maker the database of the worker, or use "
                "job.complete()"
            )
        self._same.add(provider)


def _identity(conn: Any) -> Any:
    if isinstance(conn, Connection):
        with Cursor(conn, row_factory=tuple_row) as cursor:
            return _first(cursor.execute(IDENTITY).fetchone())
    if hasattr(conn, "in_atomic_block"):  # Django
        with conn.cursor() as cursor:
            cursor.execute(IDENTITY)
            return _first(cursor.fetchone())
    core = conn if hasattr(conn, "exec_driver_sql") else conn.connection()  # SQLAlchemy
    return core.exec_driver_sql(IDENTITY).scalar()


async def _aidentity(conn: Any) -> Any:
    if isinstance(conn, AsyncConnection):
        async with AsyncCursor(conn, row_factory=tuple_row) as cursor:
            await cursor.execute(IDENTITY)
            return _first(await cursor.fetchone())
    if hasattr(conn, "fetchval"):  # asyncpg
        return await conn.fetchval(IDENTITY)
    core = conn if hasattr(conn, "exec_driver_sql") else await conn.connection()
    return (await core.exec_driver_sql(IDENTITY)).scalar()


def _first(row: Any) -> Any:
    return row[0]


def _raise_unless_not_installed(error: Exception) -> None:
    """Another error than a missing function says nothing about which database it is: it goes on."""
    driver = getattr(error, "orig", None) or error.__cause__ or error
    if getattr(driver, "sqlstate", None) not in NOT_INSTALLED:
        raise error
