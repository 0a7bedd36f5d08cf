"""Carriers: run a Call inside a transaction of the user's own, whatever library the connection is of."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Protocol, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from faultline.errors import BadDocument, InputError, TransactionConflict
from faultline.store.call import Call
from faultline.store.driver.arrays import register_types
from faultline.store.driver.loaders import register_raw_types
from faultline.store.driver.sqlstate import ErrorFacts, named, named_by, went_away

T = TypeVar("T")

CONFLICT: Final = "40001"


class Carrier(Protocol):
    """Runs calls on one plain connection; what they write commits with the connection's transaction."""

    def run(self, call: Call[T]) -> T: ...

    def in_transaction(self) -> bool:
        """Whether a statement now would be part of a transaction that ends later."""
        ...

    def watch(self) -> None:
        """From now on notice what ends the transaction; before the first of its statements."""
        ...

    def was_ended(self) -> bool:
        """Whether the transaction that was watched is over: by a method of the library, or by SQL."""
        ...

    def after_commit(self, act: Callable[[], object]) -> bool:
        """Have something done once the transaction is committed; False where the library cannot tell."""
        ...


class AsyncCarrier(Protocol):
    """The same for a connection of async code."""

    async def run(self, call: Call[T]) -> T: ...

    async def in_transaction(self) -> bool: ...

    def watch(self) -> None: ...

    async def was_ended(self) -> bool: ...

    def after_commit(self, act: Callable[[], object]) -> bool:
        """As for a plain carrier; `act` does not block, and is called in the event loop's thread."""
        ...


class PsycopgCarrier:
    """A psycopg connection. It has no hook for the commit."""

    def __init__(self, conn: Connection[Any]) -> None:
        self._conn = conn

    def run(self, call: Call[T]) -> T:
        _check_not_closed(self._conn)
        register_types(self._conn)
        # Not conn.cursor(): a connection may make cursors that take no names, or no binary rows.
        with carried_errors(), Cursor(self._conn, row_factory=tuple_row) as cursor:
            register_raw_types(cursor.adapters, call)
            return call.read(cursor.execute(call.sql, call.args, binary=True).fetchall())

    def in_transaction(self) -> bool:
        return _in_transaction(self._conn)

    def watch(self) -> None: ...

    def was_ended(self) -> bool:
        return self._conn.info.transaction_status == TransactionStatus.IDLE

    def after_commit(self, act: Callable[[], object]) -> bool:
        return False


class AsyncPsycopgCarrier:
    """The same for async code."""

    def __init__(self, conn: AsyncConnection[Any]) -> None:
        self._conn = conn

    async def run(self, call: Call[T]) -> T:
        _check_not_closed(self._conn)
        register_types(self._conn)
        with carried_errors():
            async with AsyncCursor(self._conn, row_factory=tuple_row) as cursor:
                register_raw_types(cursor.adapters, call)
                await cursor.execute(call.sql, call.args, binary=True)
                return call.read(await cursor.fetchall())

    async def in_transaction(self) -> bool:
        return _in_transaction(self._conn)

    def watch(self) -> None: ...

    async def was_ended(self) -> bool:
        return self._conn.info.transaction_status == TransactionStatus.IDLE

    def after_commit(self, act: Callable[[], object]) -> bool:
        return False


def _in_transaction(conn: "Connection[Any] | AsyncConnection[Any]") -> bool:
    return not conn.autocommit or conn.info.transaction_status == TransactionStatus.INTRANS


def _check_not_closed(conn: "Connection[Any] | AsyncConnection[Any]") -> None:
    """A connection that broke is an outage, and worth another try; one that its user closed is a mistake."""
    if conn.closed and not conn.broken:
        raise InputError("this connection was closed; nothing was sent. Give it before you close it")


@contextmanager
def carried_errors() -> Iterator[None]:
    """Replace a driver's error in the user's transaction by one of Faultline; others pass as they are."""
    try:
        yield
    except psycopg.Error as fault:
        raise conflict(ErrorFacts.of(fault)) or named(fault) from fault
    except UnicodeEncodeError as fault:
        raise no_text(fault) from fault


def error_for(facts: ErrorFacts, fault: BaseException) -> BaseException:
    """The same for an error whose facts another library has told; the error itself if there is no better."""
    if not facts.state:
        return went_away(facts.line)
    return conflict(facts) or named_by(facts) or fault


def conflict(facts: ErrorFacts) -> TransactionConflict | None:
    """A concurrent write, of this job's row or another: nothing is decided, and the user may repeat it."""
    if facts.state != CONFLICT:
        return None
    return TransactionConflict(
        f"{facts.line}: everything in this transaction rolls back, and the job is as it was; repeat it"
    )


def no_text(fault: UnicodeEncodeError) -> InputError:
    """A character that UTF-8 cannot carry, in a text of the call."""
    return BadDocument(
        f"a text holds a character that UTF-8 cannot carry (a lone surrogate) at position {fault.start}; "
        "remove it"
    )


_ELSEWHERE: Final = (
    # The module and class of a connection; our module and class that carry calls on it.
    ("asyncpg.connection", "Connection", "asyncpg", "AsyncpgCarrier"),
    ("asyncpg.pool", "PoolConnectionProxy", "asyncpg", "AsyncpgCarrier"),
    ("sqlalchemy.ext.asyncio", "AsyncConnection", "sqlalchemy", "AsyncConnectionCarrier"),
    ("sqlalchemy.ext.asyncio", "AsyncSession", "sqlalchemy", "AsyncSessionCarrier"),
    ("sqlalchemy.ext.asyncio", "async_scoped_session", "sqlalchemy", "AsyncSessionCarrier"),
    ("sqlalchemy.engine", "Connection", "sqlalchemy", "ConnectionCarrier"),
    ("sqlalchemy.orm", "Session", "sqlalchemy", "SessionCarrier"),
    ("sqlalchemy.orm", "scoped_session", "sqlalchemy", "SessionCarrier"),
    ("django.db.backends.base.base", "BaseDatabaseWrapper", "django.carrier", "DjangoCarrier"),
    ("django.utils.connection", "ConnectionProxy", "django.carrier", "DjangoCarrier"),
)

_ASYNC: Final = ("asyncpg.connection", "asyncpg.pool", "sqlalchemy.ext.asyncio")


def plain_carrier(conn: object, form: str) -> Carrier:
    """The carrier for a connection of plain code, or InputError that names what `form` takes."""
    if isinstance(conn, Connection):
        return PsycopgCarrier(conn)
    carrier, is_async = _find(conn)
    if carrier is None or is_async:
        raise _wrong(conn, form, of_other_form=is_async or isinstance(conn, AsyncConnection))
    found: Carrier = carrier
    return found


def async_carrier(conn: object, form: str) -> AsyncCarrier:
    """The carrier for a connection of async code, or InputError that names what `form` takes."""
    if isinstance(conn, AsyncConnection):
        return AsyncPsycopgCarrier(conn)
    carrier, is_async = _find(conn)
    if carrier is None or not is_async:
        raise _wrong(conn, form, of_other_form=carrier is not None or isinstance(conn, Connection))
    found: AsyncCarrier = carrier
    return found


def is_awaited(conn: object) -> bool:
    """Whether calls on this connection are awaited."""
    return isinstance(conn, AsyncConnection) or _kind_of(conn, async_only=True) is not None


def _find(conn: object) -> tuple[Any, bool]:
    kind = _kind_of(conn)
    if kind is None:
        return None, False
    module, _, ours, name = kind
    return getattr(import_module(f"faultline.integrations.{ours}"), name)(conn), module in _ASYNC


def _kind_of(conn: object, *, async_only: bool = False) -> tuple[str, str, str, str] | None:
    """A library is only asked where the program has imported it: a connection of it is at hand."""
    for kind in _ELSEWHERE:
        loaded = sys.modules.get(kind[0])
        if loaded is not None and isinstance(conn, getattr(loaded, kind[1])):
            return kind if kind[0] in _ASYNC or not async_only else None
    return None


def _wrong(conn: object, form: str, of_other_form: bool) -> InputError:
    """The connection is of no library that we know, or of the other of two forms."""
    name = f"{type(conn).__module__}.{type(conn).__qualname__}".removeprefix("builtins.")
    hint = "give it the connection that your transaction is on"
    if form.startswith("job."):
        kinds = "a connection or session of psycopg, asyncpg, SQLAlchemy or Django"
    elif form.startswith("a"):
        kinds = "an async connection or session of psycopg, asyncpg or SQLAlchemy"
        hint = f"for it there is {form[1:]}" if of_other_form else hint
    else:
        kinds = "a plain connection or session of psycopg, SQLAlchemy or Django"
        hint = f"for it there is a{form}" if of_other_form else hint
    return InputError(f"{form} takes {kinds} first, not a {name}; {hint}")
