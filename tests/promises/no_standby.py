"""A server of its own whose synchronous standby is away: no commit that wrote anything is answered."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import pytest

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate
from tests.promises.standby import a_primary

T = TypeVar("T")

PATIENCE_SECONDS = float(os.environ.get("FAULTLINE_TEST_PATIENCE", 60))
LOOK_EVERY_SECONDS = 0.01

WAITING = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep'"


class Cluster:
    """One database, and a standby that is there or not as far as commits are concerned."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self._threads = ThreadPoolExecutor(8)
        server.create_database("shop")
        self.dsn = server.dsn("shop")
        migrate(self.dsn)

    @contextmanager
    def standby_away(self) -> Iterator[None]:
        """Commits wait for a standby that never comes; at the end all of them are let go."""
        self._wait_for_standby("away")
        try:
            yield
        finally:
            self._wait_for_standby("")

    def _wait_for_standby(self, name: str) -> None:
        with psycopg.connect(self._server.dsn(), autocommit=True) as conn:
            conn.execute(f"alter system set synchronous_standby_names = '{name}'".encode())
            conn.execute("select pg_reload_conf()")
        # A session begun now has it once the server's first process has; the checkpointer lets commits wait.
        for _ in _patiently():
            with psycopg.connect(self.dsn, autocommit=True) as conn:
                if conn.execute("show synchronous_standby_names").fetchone() == (name,) and (
                    not name or self._a_commit_waits(conn)
                ):
                    return

    def _a_commit_waits(self, conn: psycopg.Connection[Any]) -> bool:
        probe = self.start(self._write)
        for _ in _patiently():
            if probe.done():
                return False
            if self.waiting():
                self.cancel_waits()
                probe.result(PATIENCE_SECONDS)
                return True
        return False

    def _write(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute("select pg_logical_emit_message(true, 'test', '')")

    def start(self, act: Callable[..., T], *args: Any) -> "Future[T]":
        """Do it in a thread; the answer comes when it comes."""
        return self._threads.submit(act, *args)

    def waiting(self) -> list[int]:
        """The sessions whose commit waits for the standby."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            return [pid for (pid,) in conn.execute(WAITING).fetchall()]

    def cancel_waits(self) -> None:
        """Have every commit that waits be a commit here, and perhaps nowhere else: its client gave up."""
        for _ in _patiently():
            if not (waiting := self.waiting()):
                return
            with psycopg.connect(self.dsn, autocommit=True) as conn:
                for pid in waiting:
                    conn.execute("select pg_cancel_backend(%s)", [pid])

    def cancel_until_done(self, answer: "Future[T]") -> T:
        """The same again and again, until it is answered: others may wait as well, and earlier."""
        for _ in _patiently():
            if answer.done():
                break
            self.cancel_waits()
        return answer.result(0)

    def wait_until_the_key_is_noted(self) -> None:
        """A server writes that an API key is in use, at most once a minute, beside the first request.

        That commit waits as well, and must not be taken for another.
        """
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            for _ in _patiently():
                unused = "select from faultline.api_keys where last_used_at is null"
                if conn.execute(unused).fetchone() is None:
                    return

    def check_that_it_waits(self, answer: "Future[Any]") -> None:
        """Return once a commit waits for the standby; fail if there was an answer first."""
        for _ in _patiently():
            if answer.done():
                pytest.fail(f"answered without the standby: {answer.exception() or answer.result()!r}")
            if self.waiting():
                return
        pytest.fail("it neither waited nor answered")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def a_cluster() -> Iterator[Cluster]:
    with a_primary() as server:
        cluster = Cluster(server)
        try:
            yield cluster
        finally:
            cluster.close()


def _patiently() -> Iterator[None]:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        yield
        time.sleep(LOOK_EVERY_SECONDS)
