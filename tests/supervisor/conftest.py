"""What tests of the supervisor need: groups of real worker processes, and a look at what is left of them."""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faultline.store import calls
from faultline.store.pool import Store
from tests.drills.processes import MARK, pids_marked
from tests.worker.harness import LEASE, PATIENCE, children, eventually, execute, rows

HERE = Path(__file__).parent
NOTES = "create table notes (job_id bigint, token bigint, pid int, at timestamptz default clock_timestamp())"
LISTENING = (
    "select pid from pg_stat_activity where query = 'listen faultline' and datname = current_database()"
)
WATCHING = (
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    " and query ~ 'faultline.(round|lead|reap|rescue|promote|next_due|floors|partitions|first_free|wake"
    "|due_schedules|fire|prune|drop_partitions|quarantine)'"
)


class Group:
    """`faultline worker --processes N` as a person starts it."""

    def __init__(self, dsn: str, log: Path, words: tuple[str, ...], environment: dict[str, str]) -> None:
        self.dsn = dsn
        self.log = log
        self.mark = secrets.token_hex(8)
        with log.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "faultline", "worker", "group_app:app", "--log", "json", *words],
                cwd=HERE,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "FAULTLINE_DSN": dsn, MARK: self.mark, **environment},
            )

    def said(self) -> str:
        return self.log.read_text()

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("event") == name]

    def pids(self) -> list[int]:
        """Its worker processes, without their pacemakers."""
        return sorted(children(self.process.pid))

    def working(self, count: int) -> list[tuple[str, int]]:
        """Name and process of each of its workers, as soon as so many have said hello."""

        def look() -> list[Any]:
            assert self.process.poll() is None, self.said()
            found = rows(
                self.dsn,
                "select name, pid from faultline.workers"
                " where stopped_at is null and pid = any(%s) order by name",
                self.pids(),
            )
            return found if len(found) == count else []

        return eventually(look, PATIENCE * 2)

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE * 2)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said()) from None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        """Whatever is left of it: gone."""
        self.process.kill()
        self.process.wait()
        for pid in pids_marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """A store on this test's database, whose hold-fire is as short as the leases of these tests."""
    store = Store(database)
    store.run(calls.configure(default_lease=LEASE / 2))
    execute(database, NOTES)
    yield store
    store.close()


@pytest.fixture
def group(database: str, tmp_path: Path) -> Iterator[Callable[..., Group]]:
    """Starts groups; whatever is left of them is killed after the test."""
    started: list[Group] = []

    def start(*words: str, dsn: str = database, **environment: str) -> Group:
        started.append(Group(dsn, tmp_path / f"group-{len(started)}.log", words, environment))
        return started[-1]

    yield start
    for group in started:
        group.end()


def begun(dsn: str) -> list[tuple[int, int]]:
    """Each handler that began, and in which process."""
    return rows(dsn, "select job_id, pid from notes order by at")


def listeners(dsn: str) -> list[int]:
    return [pid for (pid,) in rows(dsn, LISTENING)]


def watchdogs(dsn: str) -> list[int]:
    """Connections that a watchdog has spoken over."""
    return [pid for (pid,) in rows(dsn, WATCHING)]


def one_line(text: str) -> str:
    """What a command said in plain words, without log lines."""
    lines: list[str] = re.findall(r"^faultline: .*$", text, re.MULTILINE)
    assert len(lines) == 1, text
    return lines[0]


def cut_listeners(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"select pg_terminate_backend(pid) from ({LISTENING}) as listening".encode())
