"""Barriers in the database: whoever comes to a closed one waits there until the drill opens it.

A barrier is an advisory lock with a name, told apart from other people's by the drill's own schema. The drill
closes it by taking it alone; who passes takes it together with others, for a moment.
"""

import threading
from typing import Any, Final

import psycopg

from faultline.drills.trace import DRILL, Sign, Trace
from faultline.store.connect import connect

WAIT_MAX: Final = "60s"

_KEY: Final = "hashtextextended(current_schema() || '/' || %s, 0)"
CLOSE: Final = f"select pg_advisory_lock({_KEY})"
OPEN: Final = f"select pg_advisory_unlock({_KEY})"
PASS: Final = f"select set_config('lock_timeout', '{WAIT_MAX}', true), pg_advisory_xact_lock_shared({_KEY})"


def close(conn: psycopg.Connection[Any], name: str) -> None:
    """Let nobody pass until it is opened, or this connection ends."""
    conn.execute(CLOSE, [name])


def open(conn: psycopg.Connection[Any], name: str) -> None:
    """Let everybody pass, those who wait there and those who come."""
    conn.execute(OPEN, [name])


def pass_through(conn: psycopg.Connection[Any], name: str) -> None:
    """Wait until the barrier is open; for those the drill plays with."""
    conn.execute(PASS, [name])


class Ear:
    """Hears what transactions say as they commit (LISTEN), and passes it on to the trace."""

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
                    Sign(DRILL, "committed", {"worker": who, "token": int(token)}, level="debug")
                )
        except psycopg.OperationalError:
            return  # the server has gone, and with it everything there was to hear

    def close(self, conn: psycopg.Connection[Any]) -> None:
        """Say goodbye on another connection, so that the listening one is free to be closed."""
        conn.execute("select pg_notify(%s, 'goodbye')", [self._channel])
        self._thread.join(5)
        self._conn.close()
