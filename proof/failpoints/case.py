"""One case: a point and an action, a victim it strikes, a rescuer that takes over, and the oracle's word."""

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
from faultline.store.run import Store
from proof.failpoints.app import EFFECTIVE, JOBS, ROUNDS, keyed
from proof.failpoints.processes import Crew
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
    # Not those whose row is locked: who froze in its commit keeps the job until it wakes, and commits then.
    "select count(*) from (select from faultline.active where lease_until < faultline.now()"
    " for no key update skip locked) as left_to_take"
)
WANTED = [("cancelled", ROUNDS), ("succeeded", JOBS - ROUNDS)]


@dataclass(frozen=True, slots=True)
class Case:
    """Where the fault strikes, and what it is: `kill` or `freeze`."""

    point: str
    action: str


@dataclass(slots=True)
class Result:
    """What became of a case; no complaints, and everything was kept."""

    case: Case
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


class Stuck(Exception):
    """What had to come did not come in time."""


def play(case: Case, dsn: str) -> Result:
    """Have the fault strike, let others recover, and ask the oracle."""
    result = Result(case)
    folder = Path(tempfile.mkdtemp(prefix="faultline-failpoints-"))
    try:
        with psycopg.connect(dsn, autocommit=True) as conn, Crew(dsn, folder) as crew:
            conn.execute(EFFECTS)
            Store.run_in(conn, calls.configure(default_lease=LEASE / 2))
            _strike(case, crew, conn, result)
            struck_at = time.monotonic()
            _heal(case, crew, conn)
            result.recovered_in = time.monotonic() - struck_at
            _judge(conn, crew, result)
    except Stuck as stuck:
        result.complaints.append(str(stuck))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _strike(case: Case, crew: Crew, conn: psycopg.Connection[Any], result: Result) -> None:
    """Start a worker and a producer that are both armed, and wait until the point was reached by anybody."""
    crew.arm(f"{case.point}={case.action}")
    victim = crew.worker("victim", armed=True)
    producer = crew.producer(armed=True)
    with contextlib.suppress(Stuck):
        _until(lambda: crew.struck() or producer.has_ended, REACHED_SECONDS_MAX, "")
        # All that is left are the jobs that take longer than a lease.
        _until(lambda: crew.struck() or _one(conn, LEFT) <= ROUNDS, REACHED_SECONDS_MAX, "")
        _until(crew.struck, CALM_SECONDS, "")
    if not crew.struck():
        victim.send(signal.SIGTERM)  # some points are on its way out
    _until(crew.struck, REACHED_SECONDS_MAX, f"{case.point} was never reached")
    result.struck = crew.part_struck()


def _heal(case: Case, crew: Crew, conn: psycopg.Connection[Any]) -> None:
    """Faults have stopped: another worker, every job asked for again, the frozen continued; then a drain."""
    crew.worker("rescuer")
    if case.action == "freeze":
        time.sleep(FROZEN_SECONDS)
        _until(lambda: not _one(conn, EXPIRED), DRAIN_SECONDS_MAX, "nobody took over from the frozen")
        crew.thaw()
    # Not before: who froze in its commit holds its key, and whoever asks for that key has to wait.
    for task in keyed():
        Store.run_in(conn, calls.enqueue(task.new()))
    crew.named("victim").send(signal.SIGTERM)
    _until(lambda: not _one(conn, LEFT), DRAIN_SECONDS_MAX, "the queue did not drain")


def _judge(conn: psycopg.Connection[Any], crew: Crew, result: Result) -> None:
    """Processes leave, connections are gone, every job ended as it should, and the oracle has looked."""
    complaints = result.complaints
    acknowledged = crew.acknowledged()
    complaints += crew.leave(LEAVE_SECONDS_MAX)
    with contextlib.suppress(Stuck):
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
            raise Stuck(otherwise)
        time.sleep(0.05)


def _one(conn: psycopg.Connection[Any], question: str) -> Any:
    row = conn.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]
