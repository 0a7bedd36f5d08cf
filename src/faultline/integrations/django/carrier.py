"""Carries calls on a database connection of Django."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import transaction
from django.db.utils import Error

from faultline.errors import InputError
from faultline.integrations.text_call import text_call
from faultline.store.call import Call
from faultline.store.carrier import error_for, no_text
from faultline.store.driver.sqlstate import ErrorFacts

T = TypeVar("T")


class DjangoCarrier:
    """A connection such as `django.db.connection`, with psycopg 3 or psycopg2 below it."""

    def __init__(self, conn: Any) -> None:
        if conn.vendor != "postgresql":
            raise InputError(
                f"the database {conn.alias!r} is of {conn.vendor}; Faultline's jobs are in PostgreSQL, and "
                "commit with rows of the same database only. Nothing was written"
            )
        self._conn = conn

    def run(self, call: Call[T]) -> T:
        sql, args = text_call(call, "pyformat")
        return call.read(self.rows(sql, args))

    def rows(self, sql: str, args: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement; errors of the database become those of Faultline."""
        try:
            with self._conn.cursor() as cursor:
                cursor.execute(sql, args)
                return [tuple(row) for row in cursor.fetchall()]
        except Error as fault:
            if self._conn.in_atomic_block:
                # A swallowed refusal would else let `atomic` send a COMMIT, and run what waits for it.
                self._conn.set_rollback(True)
            raise error_for(ErrorFacts.of(fault.__cause__ or fault), fault) from fault
        except UnicodeEncodeError as fault:
            raise no_text(fault) from fault

    def in_transaction(self) -> bool:
        return bool(self._conn.in_atomic_block or not self._conn.get_autocommit())

    def watch(self) -> None:
        StatementWatch.on(self._conn).ended = False

    def was_ended(self) -> bool:
        return not self._conn.in_atomic_block or StatementWatch.on(self._conn).ended

    def after_commit(self, act: Callable[[], object]) -> bool:
        transaction.on_commit(act, using=self._conn.alias, robust=True)
        return True


class StatementWatch:
    """Notices a COMMIT or ROLLBACK that was sent as SQL: `in_atomic_block` stays true after it."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self.ended = False

    @classmethod
    def on(cls, conn: Any) -> "StatementWatch":
        """The one of this connection; made at first use, and kept as long as the connection is."""
        for wrapper in conn.execute_wrappers:
            if isinstance(wrapper, cls):
                return wrapper
        watch = cls(conn)
        conn.execute_wrappers.insert(0, watch)  # those who come and go take the last one away
        return watch

    def __call__(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        # Of psycopg and psycopg2 alike, 0 is "idle": no transaction is open on the server.
        self.ended |= self._conn.in_atomic_block and self._conn.connection.info.transaction_status == 0
        return answer
