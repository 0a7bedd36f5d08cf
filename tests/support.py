"""Helpers for tests: a job to enqueue, a lease to hold, a clock to move, rows to count."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid4

import psycopg
import pytest

from faultline.job import NewJob
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.call import Call

T = TypeVar("T")

LEASE = timedelta(seconds=15)
NOW = timedelta(0)
SECOND = timedelta(seconds=1)


PROXIES_SET = (
    "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-server",
    "x-forwarded", "x-forwarded-scheme", "x-envoy-external-address", "x-cluster-client-ip", "fly-client-ip",
    "x-original-host", "forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip",
)  # fmt: skip
"""Headers by which proxies give themselves away; many of them set but one."""

TAKE_OVER = """
update faultline.active as job
set token = job.token + 1, claim = gen_random_uuid()
from (
  select old.id, faultline.write_ledger(old, 'expired', faultline.now())
  from faultline.active as old
  where old.id = %s offset 0
) as ended
where job.id = ended.id
"""
"""What a reap and another worker's claim leave behind: the ledger's entry, a higher token, another claim."""


class Carrier(Protocol):
    """Whatever carries a call: a store, or one session of its own."""

    def run(self, call: Call[T]) -> T: ...


def new_job(task: str = "test_task", args: str = "{}", max_attempts: int = 5, **options: Any) -> NewJob:
    """A job to ask for; anything NewJob knows can be given."""
    return NewJob(task=task, args=args, max_attempts=max_attempts, **options)


def enqueue(store: Carrier, **options: Any) -> int:
    """Put one job in its queue and give its id."""
    return store.run(calls.enqueue(new_job(**options)))


def claim_many(
    store: Carrier,
    room: int = 100,
    *,
    queues: tuple[str, ...] = ("default",),
    lease: timedelta = LEASE,
    worker: int | None = None,
    claim: UUID | None = None,
    **options: Any,
) -> list[Lease]:
    """Leases on as many due jobs as there are, up to `room`; in the order of their ids."""
    claim = claim or uuid4()
    taken_at = time.monotonic()
    rows = store.run(calls.claim(queues, room, lease=lease, claim=claim, worker=worker, **options))
    return sorted(Lease(row.id, row.token, claim, lease.total_seconds(), taken_at) for row in rows)


def claim_one(store: Carrier, **options: Any) -> Lease:
    """A lease on the one job that comes next."""
    (lease,) = claim_many(store, 1, **options)
    return lease


def worker_named(store: Carrier, name: str) -> int:
    """The number of a worker that has said it is there."""
    return store.run(calls.worker_started(name, "host", 1, ["default"], 10, "0"))


def state_of(store: Carrier, job_id: int) -> str | None:
    """What the view `jobs` says of a job; None when there is no such job."""
    job = store.run(calls.get(job_id))
    return None if job is None else str(job.state)


def outcomes(store: Carrier, job_id: int) -> list[str]:
    """How each lease of a job ended, oldest first, as the ledger has it."""
    return [entry.outcome for entry in store.run(calls.history(job_id))]


@contextmanager
def holding(dsn: str, job_id: int) -> Iterator[psycopg.Connection[Any]]:
    """Another session that keeps an active job's row locked while the block runs."""
    with psycopg.connect(dsn) as conn:
        conn.execute("select from faultline.active where id = %s for update", [job_id])
        yield conn
        conn.rollback()


def all_at_once(times: int, act: Callable[[int], T]) -> list[T]:
    """What `act` gives for 0, 1, 2 ..., each in a thread of its own, all let go together."""
    with ThreadPoolExecutor(times) as threads:
        return list(threads.map(act, range(times)))


def row_counts(dsn: str) -> dict[str, int]:
    """How many rows each of our tables holds: the same before and after says that no row came or went."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        tables = conn.execute(
            "select relname from pg_class"
            " where relnamespace = 'faultline'::regnamespace and relkind in ('r', 'p') order by relname"
        ).fetchall()
        return {name: _one(conn, f'select count(*) from faultline."{name}"') for (name,) in tables}


def contents(dsn: str) -> dict[str, list[str]]:
    """Every row of each of our tables, as text: the same before and after says that nothing changed."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        return {name: _rows(conn, name) for name in row_counts(dsn)}


def _rows(conn: psycopg.Connection[Any], table: str) -> list[str]:
    return [
        text
        for (text,) in conn.execute(f'select row::text from faultline."{table}" as row order by 1'.encode())
    ]


CLOCK = """
create schema if not exists test_clock;
create table if not exists test_clock.skew as
select interval '0' as skew, clock_timestamp() as since, 1.0::float8 as pace;
create or replace function faultline.now() returns timestamptz language sql volatile as
$$ select since + (clock_timestamp() - since) * pace + skew from test_clock.skew $$;
"""


def install_clock(dsn: str) -> None:
    """Make a database's clock one that can be moved, unless it is."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        if conn.execute("select to_regclass('test_clock.skew')").fetchone() == (None,):
            conn.execute(CLOCK)


class Clock:
    """The database's clock, to be moved: every connection to this database sees the same skew.

    `pace` is how fast it goes on by itself, beside time. Where no process waits for it, a hundredth: on a
    busy machine a second is soon lost between two lines, and two moments are still never the same.
    """

    def __init__(self, dsn: str, pace: float = 1.0) -> None:
        self._dsn = dsn
        install_clock(dsn)
        self._run("update test_clock.skew set pace = %s, since = clock_timestamp()", [pace])

    def advance(self, by: timedelta | None = None, **units: float) -> None:
        """Move on by a timedelta, or by its words: `clock.advance(minutes=1)`. Negative moves back."""
        self._run("update test_clock.skew set skew = skew + %s", [by or timedelta(**units)])

    def now(self) -> datetime:
        """What `faultline.now()` says."""
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            moment: datetime = _one(conn, "select faultline.now()")
            return moment

    def _run(self, sql: str, args: list[Any] | None = None) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            conn.execute(sql, args)


class StillTime:
    """The module `time` with a monotonic clock that only moves when it is told to: `still.now += 0.5`."""

    def __init__(self, now: float) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def still_time(monkeypatch: pytest.MonkeyPatch, now: float = 1000.0) -> StillTime:
    """Give every module of ours the same still clock.

    A module left out would compare the real monotonic clock with ours, and then the test depends on how long
    the machine has been up.
    """
    still = StillTime(now)
    for name, module in list(sys.modules.items()):
        if name.startswith("faultline.") and vars(module).get("time") is time:
            monkeypatch.setattr(module, "time", still)
    return still


def _one(conn: psycopg.Connection[Any], sql: str) -> Any:
    row = conn.execute(sql.encode()).fetchone()
    assert row is not None
    return row[0]


def freeze(pid: int) -> None:
    """Stop a process, and return once each of its threads stands: a signal alone is only on its way."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    while any(_state(task) not in "Tt" for task in tasks.glob("*/stat")):
        time.sleep(0.002)


def _state(stat: Path) -> str:
    """The letter of a thread's state; one that has ended stands as well."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "T"
