"""Store: run a Call over a pool, or over the caller's own connection."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, Cursor
from psycopg.errors import InternalError_
from psycopg.rows import tuple_row

from faultline.errors import CannotConnect, DatabaseError, ReadOnlyServer
from faultline.store.call import Call
from faultline.store.driver.arrays import register_types
from faultline.store.driver.async_connection import SyncPqConnection
from faultline.store.driver.loaders import register_raw_types
from faultline.store.driver.sqlstate import named_errors, was_swapped
from faultline.store.pool.plain_pool import PlainPool
from faultline.store.pool.pool_settings import (
    AHEAD_MAX,
    POOL_WAIT_SECONDS,
    SECOND_TRY_SECONDS,
    SWAPS_MAX,
    ask_for_the_reply,
)

T = TypeVar("T")


class Store(PlainPool):
    """Runs calls for synchronous code. The first call that needs a connection makes it."""

    def run(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Run one call in its own transaction; a hint, if given, directly after its commit.

        If the server has turned read-only, nothing was written: the call is tried once more, over a new
        connection.
        """
        try:
            return self._run(POOL_WAIT_SECONDS, call, hint)
        except ReadOnlyServer as refused:
            try:
                return self._run(POOL_WAIT_SECONDS, call, hint)
            except CannotConnect as away:  # no other server yet: the first error is the answer
                raise refused from away

    def run_again(self, call: Call[T], hint: Call[Any] | None = None) -> T:
        """Repeat a call that got no answer; the wait for a connection is shorter, since time has passed."""
        return self._run(SECOND_TRY_SECONDS, call, hint)

    def _run(self, wait: float, call: Call[T], hint: Call[Any] | None) -> T:
        with self._borrowed(wait) as conn:
            for _ in range(SWAPS_MAX):
                try:
                    return self._carry(conn, call, hint)
                except InternalError_ as fault:
                    if not was_swapped(fault):
                        raise
            return self._carry(conn, call, hint)

    def _carry(self, conn: SyncPqConnection, call: Call[T], hint: Call[Any] | None) -> T:
        if self._prepare:
            with named_errors():
                return call.read(conn.wait(conn.prepared_calls.carry(call, hint)))
        answer = self.run_in(conn, call)
        if hint is not None:
            with suppress(psycopg.Error, DatabaseError):
                self.run_in(conn, hint)
        return answer

    @staticmethod
    def run_in(conn: Connection[Any], call: Call[T]) -> T:
        """Run one call in the caller's own transaction."""
        register_types(conn)
        with named_errors(), conn.cursor(binary=True, row_factory=tuple_row) as cursor:
            register_raw_types(cursor.adapters, call)
            return call.read(cursor.execute(call.sql, call.args).fetchall())

    @staticmethod
    def run_each(conn: Connection[Any], calls: Iterable[Call[T]]) -> Iterator[T]:
        """Run many calls in the caller's own transaction; the next is made while the server runs the last."""
        register_types(conn)
        waiting: deque[tuple[Call[T], Cursor[Any]]] = deque()
        with named_errors(), conn.pipeline():
            for call in calls:
                cursor = conn.cursor(binary=True, row_factory=tuple_row)
                waiting.append((call, cursor.execute(call.sql, call.args)))
                ask_for_the_reply(conn)
                if len(waiting) > AHEAD_MAX:
                    yield _read(*waiting.popleft())
            while waiting:
                yield _read(*waiting.popleft())


def _read(call: Call[T], cursor: Cursor[Any]) -> T:
    with cursor:
        return call.read(cursor.fetchall())
