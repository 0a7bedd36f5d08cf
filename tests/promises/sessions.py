"""A database session whose statements can be left waiting: how these tests make two things happen at once.

Nothing here sleeps and hopes. Whether a statement waits is asked of PostgreSQL, and for whom.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
import pytest

from faultline.store.call import Call
from faultline.store.pool import Store

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.003


class Session:
    """One connection and a thread to speak on it."""

    def __init__(self, dsn: str, **options: Any) -> None:
        self.dsn = dsn
        self.conn: psycopg.Connection[Any] = psycopg.connect(dsn, autocommit=True, **options)
        self.pid = self.conn.info.backend_pid
        self._thread = ThreadPoolExecutor(1)

    def run(self, call: Call[T]) -> T:
        """Carry a call on this session, and wait for its answer."""
        return self.start(call).result(PATIENCE_SECONDS)

    def start(self, call: Call[T]) -> "Future[T]":
        """Carry a call on this session; the answer comes when it comes."""
        return self._thread.submit(Store.run_in, self.conn, call)

    def start_waiting(self, call: Call[T], *, behind: "Session") -> "Future[T]":
        """Carry a call that must wait for another session; returns as soon as it does."""
        return self.until_waiting(self.start(call), behind=behind)

    def until_waiting(self, answer: "Future[T]", *, behind: "Session | None" = None) -> "Future[T]":
        """Return once PostgreSQL says that we wait for `behind`, or for any session; fail if answered."""
        with psycopg.connect(self.dsn, autocommit=True) as watcher:
            for _ in _patiently():
                if answer.done():
                    pytest.fail(f"it did not wait: {answer.exception() or answer.result()!r}")
                (blockers,) = watcher.execute("select pg_blocking_pids(%s)", [self.pid]).fetchone() or ([],)
                if blockers and (behind is None or behind.pid in blockers):
                    return answer
        pytest.fail("it neither waited nor answered")

    def run_at_once(self, call: Call[T]) -> T:
        """Carry a call that must not wait for another session."""
        return self._at_once(self.start(call))

    def sql_at_once(self, text: LiteralString, *args: Any) -> list[tuple[Any, ...]]:
        """Run a statement of our own that must not wait for another session."""
        return self._at_once(self.start_sql(text, *args))

    def _at_once(self, answer: "Future[T]") -> T:
        with psycopg.connect(self.dsn, autocommit=True) as watcher:
            for _ in _patiently():
                if answer.done():
                    return answer.result()
                (blockers,) = watcher.execute("select pg_blocking_pids(%s)", [self.pid]).fetchone() or ([],)
                if blockers:
                    watcher.execute("select pg_cancel_backend(%s)", [self.pid])
                    pytest.fail(f"it waited for {blockers}")
        pytest.fail("it neither waited nor answered")

    def sql(self, text: LiteralString, *args: Any) -> list[tuple[Any, ...]]:
        """Run a statement of our own; the rows, if it has any."""
        return self._thread.submit(self._execute, text, args).result(PATIENCE_SECONDS)

    def start_sql(self, text: LiteralString, *args: Any) -> "Future[list[tuple[Any, ...]]]":
        return self._thread.submit(self._execute, text, args)

    def _execute(self, text: LiteralString, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        cursor = self.conn.execute(text, args)
        return cursor.fetchall() if cursor.description else []

    def begin(self, isolation: LiteralString = "read committed") -> None:
        self.sql("begin isolation level " + isolation)

    def commit(self) -> None:
        self.sql("commit")

    def rollback(self) -> None:
        self.sql("rollback")

    @contextmanager
    def transaction(self, isolation: LiteralString = "read committed") -> Iterator[None]:
        self.begin(isolation)
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def close(self) -> None:
        """End the session, whatever it is doing."""
        with psycopg.connect(self.dsn, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s)", [self.pid])
        self._thread.shutdown(wait=True)
        self.conn.close()


def _patiently() -> Iterator[None]:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        yield
        time.sleep(LOOK_EVERY_SECONDS)


def told_at_once(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run every act in a thread of its own; what each gave or raised, in their order."""

    def told(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(told, acts))
