"""Carries calls on connections and sessions of SQLAlchemy, plain and async, over any of its drivers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, UnboundExecutionError

from faultline.errors import InputError
from faultline.integrations.sqlalchemy_watch import is_idle, was_ended, watch
from faultline.integrations.text_call import text_call
from faultline.store.call import Call
from faultline.store.carrier import error_for, no_text
from faultline.store.driver.sqlstate import ErrorFacts

T = TypeVar("T")

_DUE: Final = "faultline_after_commit"
"""The place in `session.info` of what waits for its commit."""


class ConnectionCarrier:
    """A connection of SQLAlchemy Core. It tells of a commit only before it: no hook."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    def run(self, call: Call[T]) -> T:
        return carry(self._conn, call)

    def in_transaction(self) -> bool:
        return in_transaction(self._conn)

    def watch(self) -> None:
        watch(self._conn.engine, self._conn)

    def was_ended(self) -> bool:
        return not self._conn.in_transaction() or was_ended(self._conn)

    def after_commit(self, act: Callable[[], object]) -> bool:
        return False


class SessionCarrier:
    """A session of the ORM, or a registry of sessions that lends the one of this thread."""

    def __init__(self, session: Any) -> None:
        self._session = session if hasattr(session, "_connection_for_bind") else session()

    def run(self, call: Call[T]) -> T:
        return carry(self._session.connection(), call)

    def in_transaction(self) -> bool:
        return in_transaction(self._session.connection())

    def watch(self) -> None:
        watch_session(self._session)

    def was_ended(self) -> bool:
        return session_was_ended(self._session)

    def after_commit(self, act: Callable[[], object]) -> bool:
        do_after_commit(self._session, act)
        return True


class AsyncConnectionCarrier:
    """An async connection of SQLAlchemy Core: no hook either."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def run(self, call: Call[T]) -> T:
        found: T = await self._conn.run_sync(carry, call)
        return found

    async def in_transaction(self) -> bool:
        return bool(await self._conn.run_sync(in_transaction))

    def watch(self) -> None:
        watch(self._conn.sync_engine, self._conn.sync_connection)

    async def was_ended(self) -> bool:
        return not self._conn.in_transaction() or was_ended(self._conn.sync_connection)

    def after_commit(self, act: Callable[[], object]) -> bool:
        return False


class AsyncSessionCarrier:
    """An async session, or a registry of them."""

    def __init__(self, session: Any) -> None:
        self._session = session if hasattr(session, "sync_session") else session()

    async def run(self, call: Call[T]) -> T:
        found: T = await self._session.run_sync(lambda session: carry(session.connection(), call))
        return found

    async def in_transaction(self) -> bool:
        return bool(await self._session.run_sync(lambda session: in_transaction(session.connection())))

    def watch(self) -> None:
        watch_session(self._session.sync_session)

    async def was_ended(self) -> bool:
        return bool(await self._session.run_sync(session_was_ended))

    def after_commit(self, act: Callable[[], object]) -> bool:
        do_after_commit(self._session.sync_session, act)
        return True


def carry(conn: Connection, call: Call[T]) -> T:
    """Run a call by the driver's own cursor, with SQLAlchemy's transaction around it."""
    if conn.dialect.name != "postgresql":
        raise InputError(
            f"this connection is of {conn.dialect.name}; Faultline's jobs are in PostgreSQL, and commit with "
            "rows of the same database only. Nothing was written"
        )
    sql, args = text_call(call, conn.dialect.paramstyle)
    with sqlalchemy_errors():
        rows = conn.exec_driver_sql(
            sql, args if conn.dialect.paramstyle == "pyformat" else tuple(args.values())
        )
        return call.read([tuple(row) for row in rows.fetchall()])


def in_transaction(conn: Connection) -> bool:
    """Whether statements commit together: `conn.in_transaction()` is true under AUTOCOMMIT as well.

    After a COMMIT that was sent as SQL drivers begin anew at the next statement. Over asyncpg that is not so:
    each later statement commits by itself.
    """
    adapter: Any = conn.connection.dbapi_connection
    begun = getattr(adapter, "_transaction", None) is not None  # of asyncpg; the others have none
    lost = begun and is_idle(conn.connection.driver_connection)
    return not (lost or getattr(adapter, "autocommit", False))


def watch_session(session: Any) -> None:
    """Look at the statements of a session that connects later, as sessions do."""
    with suppress(UnboundExecutionError):  # it has an engine for each of its mappers, and none for itself
        watch(session.get_bind())


def session_was_ended(session: Any) -> bool:
    """Whether the transaction of a session is over, by its own methods or by a statement."""
    return not session.in_transaction() or was_ended(session.connection())


@contextmanager
def sqlalchemy_errors() -> Iterator[None]:
    """Replace the errors that SQLAlchemy wraps by those of Faultline."""
    try:
        yield
    except DBAPIError as fault:
        raise error_for(facts_of(fault), fault) from fault
    except UnicodeEncodeError as fault:
        raise no_text(fault) from fault


def facts_of(fault: DBAPIError) -> ErrorFacts:
    """What the server said, as the driver below SQLAlchemy has it."""
    below: Any = fault.orig
    of_asyncpg = getattr(below, "__cause__", None)
    if hasattr(of_asyncpg, "server_source_function"):
        from faultline.integrations import asyncpg

        return asyncpg.facts_of(of_asyncpg)
    return ErrorFacts("", str(below)) if fault.connection_invalidated else ErrorFacts.of(below)


def do_after_commit(session: Any, act: Callable[[], object]) -> None:
    """Act once this session's transaction is committed; forget it when it rolls back."""
    if _DUE not in session.info:
        session.info[_DUE] = []
        event.listen(session, "after_commit", _committed)
        event.listen(session, "after_rollback", _rolled_back)
    session.info[_DUE].append(act)


def _committed(session: Any) -> None:
    if session.in_nested_transaction():  # the release of a savepoint, before the commit
        return
    due, session.info[_DUE] = session.info[_DUE], []
    for act in due:
        act()


def _rolled_back(session: Any) -> None:
    session.info[_DUE] = []
