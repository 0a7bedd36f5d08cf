"""Which server took writes, when, and which history it was on: a thread a server, ten looks a second."""

import threading
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg

LOOK_EVERY_SECONDS: Final = 0.1
ASK: Final = """
select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::bool
         and coalesce((select role.rolcanlogin from pg_roles as role where role.rolname = 'shop'), true),
       case when not pg_is_in_recovery()
            then ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end,
       (select system_identifier from pg_control_system()), pg_postmaster_start_time()
"""
"""A server takes writes of the load where it is no standby, is not set read-only, and lets the role in."""


class PrimaryTerm(NamedTuple):
    """One server's life as a primary: its timeline, its system, and when it was started."""

    timeline: int
    system: int
    started: float


class Moment(NamedTuple):
    """From here on a server was so: a primary of some history, a standby, or away."""

    t: float
    server: str
    role: str
    history: PrimaryTerm | None = None


class Promotion(NamedTuple):
    t: float
    server: str
    history: PrimaryTerm


class PrimaryWatch:
    """Looks until it is told to stop; `moments` are the changes."""

    def __init__(self, servers: Mapping[str, str]) -> None:
        self.moments: list[Moment] = []
        self._over = threading.Event()
        for server, dsn in servers.items():
            threading.Thread(target=self._look, args=(server, dsn), daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _look(self, server: str, dsn: str) -> None:
        conn, last = None, None
        while not self._over.wait(LOOK_EVERY_SECONDS):
            try:
                conn = conn or psycopg.connect(dsn, autocommit=True, connect_timeout=2, tcp_user_timeout=2000)
                seen = _seen(server, conn)
            except psycopg.Error:
                seen = Moment(time.time(), server, "away")
                if conn is not None:
                    conn.close()
                conn = None
            if last is None or seen[1:] != last[1:]:
                self.moments.append(seen)
                last = seen


def _seen(server: str, conn: psycopg.Connection[Any]) -> Moment:
    row: Any = conn.execute(ASK.encode()).fetchone()
    writable, timeline, system, started = row
    if not writable:
        return Moment(time.time(), server, "standby")
    history = PrimaryTerm(timeline, system, started.timestamp())
    return Moment(time.time(), server, "primary", history)


def promotions(moments: list[Moment], since: float) -> list[Promotion]:
    """When a server began to take writes on a history that it had not been on."""
    found: list[Promotion] = []
    was: dict[str, PrimaryTerm | None] = {}
    for moment in sorted(moments):
        if moment.role == "away":
            continue
        if moment.history is not None and was.get(moment.server) != moment.history and moment.t >= since:
            found.append(Promotion(moment.t, moment.server, moment.history))
        was[moment.server] = moment.history
    return found
