"""Barriers in the database: a process that comes to a closed one waits until the drill opens it.

A barrier is an advisory lock with a name; the drill's own schema keeps it apart from other users' locks. The
drill closes it with an exclusive lock. A process that passes takes a shared lock for a moment.
"""

import threading
from typing import Any, Final

import psycopg

from faultline.lab.drills.view.trace import DRILL, Trace, TraceSign
from faultline.store.driver.connect import connect

WAIT_MAX: Final = "60s"

_KEY: Final = "hashtextextended(current_schema() || '/' || %s, 0)"
CLOSE: Final = f"select pg_advisory_lock({_KEY})"
OPEN: Final = f"select pg_advisory_unlock({_KEY})"
PASS: Final = f"select set_config('lock_timeout', '{WAIT_MAX}', true), pg_advisory_xact_lock_shared({_KEY})"


def close(conn: psycopg.Connection[Any], name: str) -> None:
    """Close it until it is opened, or this connection ends."""
    conn.execute(CLOSE, [name])


def open(conn: psycopg.Connection[Any], name: str) -> None:
    """Open it, for the processes that wait there and for those that come later."""
    conn.execute(OPEN, [name])


def pass_through(conn: psycopg.Connection[Any], name: str) -> None:
    """Wait until the barrier is open; for those the drill plays with."""
    conn.execute(PASS, [name])


class CommitListener:
    """Receives the notifications of commits (LISTEN), and passes them on to the trace."""

    def __init__(self, dsn: str, channel: str, trace: Trace) -> None:
        self._trace = trace
        self._channel = channel
        self._conn = connect(dsn)
        self._conn.execute(f'listen "{channel}"')
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            for notice in self._conn.notifies():
                if notice.payload == "goodbye":
                    return
                who, _, token = notice.payload.partition("/")
                self._trace.tell(
                    TraceSign(DRILL, "committed", {"worker": who, "token": int(token)}, level="debug")
                )
        except psycopg.OperationalError:
            return  # the server has gone, and its notifications with it

    def close(self, conn: psycopg.Connection[Any]) -> None:
        """Send the last notification on another connection, so that the listening one can be closed."""
        conn.execute("select pg_notify(%s, 'goodbye')", [self._channel])
        self._thread.join(5)
        self._conn.close()
