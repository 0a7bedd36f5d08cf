"""What the server's work costs: its own counters, and the CPU of its processes if they are on this host."""

import time
from typing import Any, Final

from psycopg import Connection

from faultline.lab.bench.measure.questions import Row, ask, ask_all
from faultline.lab.bench.measure.weight import PROC, children_of, cpu_seconds
from faultline.store.driver.connect import connect

TICKS_PER_SECOND: Final = 100
ALONE_SECONDS_MAX: Final = 2.0


class ServerProbe:
    """A connection to look at the server with; it is the bench's own, and cheap."""

    def __init__(self, dsn: str) -> None:
        self.conn: Connection[Any] = connect(dsn)
        self._postmaster = _postmaster(self.conn)

    def close(self) -> None:
        self.conn.close()

    def final_counters(self) -> Row:
        """The counters once the other sessions have ended: a session reports its last work as it ends."""
        give_up_at = time.monotonic() + ALONE_SECONDS_MAX
        while self._sessions() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        return self.counters()

    def counters(self) -> Row:
        return ask(self.conn, "counters")

    def sizes(self) -> Row:
        return ask(self.conn, "sizes")

    def claims(self) -> tuple[int, float] | None:
        """How many claims the server has timed, and their milliseconds; None where it times none."""
        found = ask(self.conn, "claims")
        return (found["calls"], found["total_time"]) if found else None

    def cpu_seconds(self) -> float | None:
        """CPU of all processes of the server, of those that have ended too; None where it is elsewhere."""
        if self._postmaster is None or (own := cpu_seconds([self._postmaster])) is None:
            return None
        # One by one: a process of the server may end while we look, and is counted among the ended ones then.
        living = sum(cpu_seconds([child]) or 0.0 for child in children_of([self._postmaster]))
        return own + living + _cpu_of_ended_children(self._postmaster)

    def session_cpu_seconds(self) -> float | None:
        """CPU of the sessions that work on this database; the server's own chores are not in it."""
        if self._postmaster is None:
            return None
        return sum(cpu_seconds([pid]) or 0.0 for pid in self._sessions())

    def _sessions(self) -> list[int]:
        return [row["pid"] for row in ask_all(self.conn, "sessions")]


def _postmaster(conn: Connection[Any]) -> int | None:
    """The server's first process, if the backend that serves us is seen here under its own name."""
    backend = PROC / str(conn.info.backend_pid)
    try:
        title = (backend / "cmdline").read_bytes()
        if b"postgres" not in title or conn.info.dbname.encode() not in title:
            return None
        return int((backend / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _cpu_of_ended_children(pid: int) -> float:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND
    except (OSError, ValueError, IndexError):
        return 0.0
