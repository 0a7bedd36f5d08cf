"""Connections for plain code: lent and taken back, reset, and left when their server turns read-only."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from threading import Lock, Timer
from time import monotonic

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from faultline.errors import CannotConnect
from faultline.store.driver.async_connection import SyncPqConnection
from faultline.store.driver.connect import (
    check_lent,
    check_server,
    connect,
    conninfo,
)
from faultline.store.driver.resetting import (
    IDLE_SECONDS,
    ConnectionsBeingReset,
    read_the_rest,
    read_what_came,
    start_reset,
)
from faultline.store.driver.sqlstate import named_errors
from faultline.store.pool.pool_settings import (
    POOL_MAX,
    POOL_TRY_SECONDS,
    POOL_WAIT_SECONDS,
    connection_options,
    in_use_of,
    none_came_free,
)
from faultline.store.servers.read_only import LastLeft, refused_by_server
from faultline.telemetry.pool_logs import pool_name


class PlainPool:
    """A pool of connections. The first that is borrowed opens it."""

    def __init__(self, dsn: str, *, prepare: bool | None = None, connections_max: int = POOL_MAX) -> None:
        """Without `prepare`, the first connection finds out whether a pooler is in between."""
        self.dsn = dsn
        self._prepare = prepare
        self._connections_max = connections_max
        self._pool: ConnectionPool[SyncPqConnection] | None = None
        self._opening = Lock()
        self._left = LastLeft()
        self._being_reset: ConnectionsBeingReset[SyncPqConnection] = ConnectionsBeingReset()
        self._sweeper: Timer | None = None

    def connection(self) -> AbstractContextManager[SyncPqConnection]:
        """A connection of the pool, in autocommit mode."""
        return self._borrowed(POOL_WAIT_SECONDS)

    @contextmanager
    def _borrowed(self, wait: float) -> Iterator[SyncPqConnection]:
        conn = self.borrow(wait)
        try:
            yield conn
        except BaseException as error:
            conn.refuses_writes |= refused_by_server(error)
            raise
        finally:
            self.give_back(conn)

    def borrow(self, wait: float = POOL_WAIT_SECONDS) -> SyncPqConnection:
        """The same without a block: `give_back` ends it."""
        pool = self._open()
        with named_errors():
            conn = self._lend(pool, wait)
        conn.lender = pool
        return conn

    def give_back(self, conn: SyncPqConnection, reset: bytes | None = None) -> None:
        """Return a connection, whose session is first made as new by the statements of `reset`, if given.

        The reply is not waited for: the next borrower reads it first.
        """
        pool, conn.lender = conn.lender, None
        if self._left.leave_with(conn):
            if reset is not None:
                conn.close()
            for other in self._being_reset.take_all():
                other.close()
                pool.putconn(other)
            pool.drain()  # the other connections belong to the same server
        elif reset is not None and pool is self._pool and start_reset(conn, reset):
            if not self._being_reset.borrowers:
                self._being_reset.add(conn)
                self._look_for_idle_ones()
                return
            self._read_reset(conn)
        elif reset is not None:
            conn.close()
        pool.putconn(conn)

    def _look_for_idle_ones(self) -> None:
        """In a thread, a while from now."""
        if self._sweeper is None:
            self._sweeper = Timer(IDLE_SECONDS, self._sweep)
            self._sweeper.daemon = True
            self._sweeper.start()

    def _sweep(self) -> None:
        self._sweeper = None
        while (conn := self._being_reset.take_idle()) is not None:
            pool = self._pool
            if pool is None:
                conn.close()
            else:
                self._is_usable(conn)
                pool.putconn(conn)
        if self._being_reset:
            self._look_for_idle_ones()

    @staticmethod
    def _read_reset(conn: SyncPqConnection) -> bool:
        """Read the reply to a reset; False, and closed, if the session is not as new."""
        is_as_new: bool | None = False
        try:
            is_as_new = read_what_came(conn.pgconn)
            if is_as_new is None:
                is_as_new = conn.wait(read_the_rest(conn.pgconn))
        except psycopg.Error:
            is_as_new = False
        finally:
            if not is_as_new:
                conn.close()
        return bool(is_as_new)

    @contextmanager
    def transaction(self) -> Iterator[SyncPqConnection]:
        """A transaction on a connection of the pool, unless its server has turned read-only."""
        for is_last in (False, True):
            with self.connection() as conn, named_errors(), conn.transaction():
                if is_last or not conn.has_turned:  # known from the reply to BEGIN
                    yield conn
                    return

    def _is_usable(self, conn: SyncPqConnection) -> bool:
        """What a pool looks at before it lends a connection, and the reply to the reset."""
        try:
            check_lent(self._left, conn)
        except psycopg.Error:
            conn.close()
            return False
        return self._read_reset(conn)

    def _lend(self, pool: ConnectionPool[SyncPqConnection], wait: float) -> SyncPqConnection:
        until = monotonic() + wait
        while True:
            while (conn := self._being_reset.take()) is not None:
                if self._is_usable(conn):
                    return conn
                pool.putconn(conn)
            try:
                with self._being_reset.another():
                    return pool.getconn(POOL_TRY_SECONDS)
            except PoolTimeout:
                if monotonic() >= until:
                    raise PoolTimeout(none_came_free(wait)) from None

    def _open(self) -> ConnectionPool[SyncPqConnection]:
        if self._pool is not None:
            return self._pool
        # If the first thread cannot connect, the waiting threads do not each try for as long after it.
        if not self._opening.acquire(timeout=POOL_WAIT_SECONDS):
            raise CannotConnect(f"no connection to the database within the time allowed: {none_came_free()}")
        try:
            if self._pool is None:
                # A separate first connection: a pool that cannot connect only reports that it waited.
                with connect(self.dsn) as conn:
                    pooled = check_server(conn)
                if self._prepare is None:
                    self._prepare = not pooled
                self._pool = ConnectionPool(
                    conninfo(self.dsn), connection_class=SyncPqConnection,
                    kwargs=connection_options(self._prepare), min_size=1, max_size=self._connections_max,
                    reconnect_timeout=POOL_TRY_SECONDS, name=pool_name(),
                    check=partial(check_lent, self._left), open=True,
                )  # fmt: skip
            return self._pool
        finally:
            self._opening.release()

    def in_use(self) -> tuple[int, int]:
        """How many connections the pool has, and how many of them are lent."""
        return in_use_of(self._pool, len(self._being_reset))

    def close(self) -> None:
        with self._opening:
            if self._pool is not None:
                if self._sweeper is not None:
                    self._sweeper.cancel()
                for conn in self._being_reset.take_all():
                    conn.close()
                    self._pool.putconn(conn)
                self._pool.close()
                self._pool = None
