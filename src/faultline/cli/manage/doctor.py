"""`faultline doctor`: common faults of a database or an installation, with their remedies."""

from dataclasses import asdict
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import click
import psycopg
from rich.table import Table
from rich.text import Text

from faultline.cli.exit_codes import CHECK_FAILED, line_of
from faultline.cli.format import safe
from faultline.cli.options import CliCommand, told
from faultline.cli.tables import toned
from faultline.cli.terminal import CommandSession, Terminal
from faultline.config import Settings, redact
from faultline.doctor import checks, replication_checks, replication_facts
from faultline.doctor.access_facts import gather
from faultline.doctor.checks import DoctorCheck
from faultline.doctor.drift import findings
from faultline.errors import FaultlineError, PermissionDenied
from faultline.store import calls, migrate
from faultline.store.driver.connect import check_server, connect
from faultline.store.sql_files import LATEST

WORKERS_MAX = 10_000

LOCKED = DoctorCheck(
    "examination", "bad", "a table of Faultline stayed locked by another session",
    "find it in pg_stat_activity, by pg_locks.pid where pg_locks.mode is AccessExclusiveLock, and end it",
)  # fmt: skip


@click.command(cls=CliCommand)
@click.option(
    "--strict", is_flag=True, help="Compare every function, grant and membership with what was shipped."
)
@told
def command(terminal: Terminal, strict: bool) -> int:
    """Examine the database and this installation; each finding comes with what to do.

    Exits with 3 when something is bad; a warning is not.
    """
    settings = terminal.settings()
    found = examine(settings)
    if strict:
        found += examine_access(settings)
    grades = [check.grade for check in found]
    terminal.show(
        {"bad": grades.count("bad"), "checks": [asdict(check) for check in found]}, lambda: _drawn(found)
    )
    return CHECK_FAILED if "bad" in grades else 0


def examine(settings: Settings) -> list[DoctorCheck]:
    """Every possible check; the first obstacle ends them."""
    dsn = settings.require_dsn()
    found = [checks.driver(psycopg.pq.__impl__)]
    try:
        found += _examine_servers(dsn)
        schema = _schema(dsn)
        found += [DoctorCheck("connection", "ok", redact(dsn)), schema or checks.schema(migrate.NOTHING)]
    except FaultlineError as error:
        return [*found, DoctorCheck("connection", "bad", line_of(error))]
    if schema is None:
        return found
    try:
        return found + _examine_inside(settings, dsn)
    except psycopg.errors.LockNotAvailable:
        return [*found, LOCKED]
    except FaultlineError as error:
        return [*found, DoctorCheck("examination", "bad", line_of(error))]


def _schema(dsn: str) -> DoctorCheck | None:
    """The state of the schema; None where there is none. A role without rights to tables asks as a client."""
    try:
        standing = migrate.check(dsn)
    except PermissionDenied:
        with connect(dsn, prepare_threshold=None) as conn:
            check_server(conn)
        return DoctorCheck("schema", "ok", f"good for version {LATEST}; its owner can look closer")
    return checks.schema(standing) if standing.number else None


def _examine_servers(dsn: str) -> list[DoctorCheck]:
    """For a DSN of several servers: which of them take writes, and whether the DSN selects the right one."""
    each = replication_facts.hosts_of(dsn)
    asked = replication_checks.target(replication_facts.parameters(dsn), len(each))
    if asked is None:
        return []
    return [asked, *replication_checks.hosts(replication_facts.ask_hosts(each))]


def examine_access(settings: Settings) -> list[DoctorCheck]:
    """Whether the database is as shipped, and offers no way around the verbs."""
    try:
        with connect(settings.require_dsn(), prepare_threshold=None) as conn:
            facts = gather(conn)
    except FaultlineError as error:
        return [DoctorCheck("access", "bad", line_of(error))]
    if drifted := findings(facts):
        return [
            DoctorCheck("access", found.grade, f"{found.about} {found.said}", found.remedy)
            for found in drifted
        ]
    return [
        DoctorCheck("access", "ok", f"{len(facts.functions)} functions as shipped, every grant by a duty")
    ]


def _examine_inside(settings: Settings, dsn: str) -> list[DoctorCheck]:
    with connect(dsn, prepare_threshold=None) as conn:
        session = CommandSession(conn)
        first = session.run(calls.doctor())
        asked_at = datetime.now(UTC)
        vitals = session.run(calls.doctor())
        between = asked_at + (datetime.now(UTC) - asked_at) / 2
        told_pid = conn.info.backend_pid
        queues = session.run(calls.list_queues())
        workers = session.run(calls.list_workers(most=WORKERS_MAX))
        replication = replication_facts.replication_of(conn)
        owner = _owner(conn)
    return [
        checks.server(vitals),
        *checks.durability(vitals),
        replication_checks.replication(replication),
        *replication_checks.standbys(replication),
        *replication_checks.slots(replication),
        checks.pooler(settings.pooler, told_pid, (first.backend_pid, vitals.backend_pid)),
        checks.clock((vitals.moment - between).total_seconds()),
        checks.transactions(vitals, owner),
        checks.watchdog(vitals),
        checks.workers(vitals),
        checks.queues(queues, workers),
        checks.tasks(vitals),
        checks.schedules(vitals),
        *checks.rows(vitals),
    ]


def _owner(conn: psycopg.Connection[Any]) -> str:
    (owner,) = conn.execute((files("faultline.doctor") / "sql" / "owner.sql").read_bytes()).fetchone() or (
        "",
    )
    return str(owner)


def _drawn(found: list[DoctorCheck]) -> Table:
    table = Table.grid(padding=(0, 2))
    for check in found:
        said = Text(safe(check.said), overflow="fold")
        if check.remedy:
            said.append(f"\n-> {safe(check.remedy)}", style="bold")
        table.add_row(toned(check.grade), check.name, said)
    return table
