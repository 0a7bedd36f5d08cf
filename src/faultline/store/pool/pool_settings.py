"""The numbers of a pool of connections, and what pools for plain and for async code have in common."""

from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

POOL_MAX = 8
SWAPS_MAX = 3
"""How often a call is repeated when a migration replaces the functions at the same time."""

AHEAD_MAX = 2
"""Calls sent ahead of the one whose reply is read: enough to keep the server busy, with little memory."""

SPARE_SECONDS_MAX = 3_000.0
"""The age from which a connection goes back to its pool at once: the pool replaces it after an hour."""

POOL_WAIT_SECONDS = 10.0
SECOND_TRY_SECONDS = 4.0
"""How long a second try waits for a connection: the first may have taken ten of the fifteen seconds."""

# By default a pool tries again after 1, 2, 4 ... 128 seconds, and would notice a server's return late.
# So it gives up after a second, and a call that still waits asks again: that starts the next try.
POOL_TRY_SECONDS = 1.0


def none_came_free(seconds: float | None = None) -> str:
    waited = POOL_WAIT_SECONDS if seconds is None else seconds
    return f"none came free in {waited:.0f} s; the server is away, or all of them are in use"


def connection_options(prepare: bool) -> dict[str, Any]:
    return {"autocommit": True, "prepare_threshold": 2 if prepare else None}


def in_use_of(pool: ConnectionPool[Any] | AsyncConnectionPool[Any] | None, unlent: int) -> tuple[int, int]:
    """The size, and how many are lent; `unlent` wait beside the pool, which counts them as lent."""
    if pool is None:
        return 0, 0
    stats = pool.get_stats()
    size = stats.get("pool_size", 0)
    return size, size - stats.get("pool_available", 0) - unlent


def ask_for_the_reply(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """In a pipeline a server keeps its replies until asked, and the driver asks only after the last call."""
    conn.pgconn.send_flush_request()
    conn.pgconn.flush()
