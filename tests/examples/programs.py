"""The examples as real processes, to be killed and frozen in the middle of their jobs."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support import freeze
from tests.worker.harness import children, eventually, rows

EXAMPLES = Path(__file__).parents[2] / "examples"

LEASE = "2s"

WAITING = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)


class Program:
    """One process of an example; what it says goes to a file."""

    def __init__(self, dsn: str, log: Path, *command: str, **environment: str) -> None:
        self.log = log
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=EXAMPLES,
                env={**os.environ, "PYTHONPATH": str(EXAMPLES), "FAULTLINE_DSN": dsn, **environment},
                stdout=said,
                stderr=said,
            )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """With its pacemaker left to notice it by itself, as after a crash."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        freeze(self.process.pid)

    def wake(self) -> None:
        self.signal(signal.SIGCONT)

    def leave(self) -> int:
        """What SIGTERM does."""
        self.signal(signal.SIGTERM)
        return self.process.wait(60)

    def end(self) -> None:
        """Whatever state it is in: gone, and its children."""
        left = children(self.process.pid) if self.process.poll() is None else []
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


@contextmanager
def stalled(dsn: str, lock: str) -> Iterator[None]:
    """For as long as the block lasts, those who need what this statement locks have to wait."""
    with psycopg.connect(dsn) as conn:
        conn.execute(lock.encode())
        yield
        conn.rollback()


def all_wait(dsn: str, sessions: int) -> None:
    """Wait until so many sessions stand before a lock."""
    eventually(lambda: rows(dsn, WAITING)[0][0] >= sessions)


def is_sound(dsn: str) -> bool:
    """What `faultline audit` says of the database."""
    asked = [sys.executable, "-m", "faultline", "audit"]
    return subprocess.run(asked, env={**os.environ, "FAULTLINE_DSN": dsn}, check=False).returncode == 0
