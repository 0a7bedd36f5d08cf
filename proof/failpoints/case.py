"""One case: a point and an action, a victim, a rescuer that takes over, and the oracle's verdict."""

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from faultline.audit import Effects, examine
from faultline.store import calls
from faultline.store.pool import Store
from proof.failpoints.app import EFFECTIVE, JOBS, ROUNDS, keyed
from proof.failpoints.processes import CaseProcesses
from proof.failpoints.timing import (
    CALM_SECONDS,
    DRAIN_SECONDS_MAX,
    FROZEN_SECONDS,
    LEASE,
    LEAVE_SECONDS_MAX,
    REACHED_SECONDS_MAX,
)

EFFECTS = "create table effects (job_id bigint not null, token bigint not null, attempt int not null)"
LEFT = "select (select count(*) from faultline.active) + (select count(*) from faultline.later)"
ENDS = "select state, count(*)::int from faultline.jobs group by state order by state"
REFUSED = "select coalesce(sum(times), 0)::int from faultline.refusals"
REAPED = "select count(*)::int from faultline.ledger where outcome = 'expired'"
STRANGERS = (
    "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
)
EXPIRED = (
    # Not those whose row is locked: a worker frozen in its commit keeps the job until it wakes and commits.
    "select count(*) from (select from faultline.active where lease_until < faultline.now()"
    " for no key update skip locked) as left_to_take"
)
WANTED = [("cancelled", ROUNDS), ("succeeded", JOBS - ROUNDS)]


@dataclass(frozen=True, slots=True)
class FailpointCase:
    """Where the fault strikes, and what it is: `kill` or `freeze`."""

    point: str
    action: str


@dataclass(slots=True)
class Result:
    """The result of a case; without complaints, everything was kept."""

    case: FailpointCase
    struck: str = ""
    recovered_in: float | None = None
    refused: int = 0
    reaped: int = 0
    complaints: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return bool(self.struck)

    @property
    def kept(self) -> bool:
        return self.reached and not self.complaints


class EventMissing(Exception):
    """An expected event did not come in time."""


def play(case: FailpointCase, dsn: str) -> Result:
    """Have the fault strike, let others recover, and ask the oracle."""
    result = Result(case)
    folder = Path(tempfile.mkdtemp(prefix="faultline-failpoints-"))
    try:
        with psycopg.connect(dsn, autocommit=True) as conn, CaseProcesses(dsn, folder) as crew:
            conn.execute(EFFECTS)
            Store.run_in(conn, calls.configure(default_lease=LEASE / 2))
            _strike(case, crew, conn, result)
            struck_at = time.monotonic()
            _heal(case, crew, conn)
            result.recovered_in = time.monotonic() - struck_at
            _judge(conn, crew, result)
    except EventMissing as stuck:
        result.complaints.append(str(stuck))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _strike(case: FailpointCase, crew: CaseProcesses, conn: psycopg.Connection[Any], result: Result) -> None:
    """Start an armed worker and an armed producer, and wait until one of them reaches the point."""
    crew.arm(f"{case.point}={case.action}")
    victim = crew.worker("victim", armed=True)
    producer = crew.producer(armed=True)
    with contextlib.suppress(EventMissing):
        _until(lambda: crew.struck() or producer.has_ended, REACHED_SECONDS_MAX, "")
        # All that is left are the jobs that take longer than a lease.
        _until(lambda: crew.struck() or _one(conn, LEFT) <= ROUNDS, REACHED_SECONDS_MAX, "")
        _until(crew.struck, CALM_SECONDS, "")
    if not crew.struck():
        victim.send(signal.SIGTERM)  # some points are on its way out
    _until(crew.struck, REACHED_SECONDS_MAX, f"{case.point} was never reached")
    result.struck = crew.part_struck()


def _heal(case: FailpointCase, crew: CaseProcesses, conn: psycopg.Connection[Any]) -> None:
    """Faults have stopped: start a worker, repeat every enqueue, continue the frozen process, then drain."""
    crew.worker("rescuer")
    if case.action == "freeze":
        time.sleep(FROZEN_SECONDS)
        _until(lambda: not _one(conn, EXPIRED), DRAIN_SECONDS_MAX, "no worker took over from the frozen one")
        crew.thaw()
    # Not before: a process frozen in its commit holds its key, and every enqueue with that key waits.
    for task in keyed():
        Store.run_in(conn, calls.enqueue(task.new()))
    crew.named("victim").send(signal.SIGTERM)
    _until(lambda: not _one(conn, LEFT), DRAIN_SECONDS_MAX, "the queue did not drain")


def _judge(conn: psycopg.Connection[Any], crew: CaseProcesses, result: Result) -> None:
    """Processes leave, connections are gone, every job ended as it should, and the oracle has looked."""
    complaints = result.complaints
    acknowledged = crew.acknowledged()
    complaints += crew.leave(LEAVE_SECONDS_MAX)
    with contextlib.suppress(EventMissing):
        _until(lambda: not _one(conn, STRANGERS), LEAVE_SECONDS_MAX, "")
    if strangers := _one(conn, STRANGERS):
        complaints.append(f"{strangers} connections were left behind")
    complaints += [f"a process was left behind: {command}" for command in crew.left_behind()]
    ends = conn.execute(ENDS).fetchall()
    if ends != WANTED:
        complaints.append(f"jobs ended as {ends}, not as {WANTED}")
    report = examine(conn, effects=Effects("public.effects", EFFECTIVE), acknowledged=acknowledged)
    if not report.holds:
        complaints.append(str(report))
    result.refused, result.reaped = _one(conn, REFUSED), _one(conn, REAPED)


def _until(true: Callable[[], Any], seconds: float, otherwise: str) -> None:
    give_up_at = time.monotonic() + seconds
    while not true():
        if time.monotonic() > give_up_at:
            raise EventMissing(otherwise)
        time.sleep(0.05)


def _one(conn: psycopg.Connection[Any], question: str) -> Any:
    row = conn.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]
