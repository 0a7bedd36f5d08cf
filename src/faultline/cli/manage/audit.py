"""`faultline audit`: compare a live database with every promise of Faultline."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

import click
import psycopg
from rich.console import Group
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from faultline.audit import INVARIANTS, AuditReport, AuditVerdict, Counterexample, examine, read_ids
from faultline.audit.examine import BOUND
from faultline.audit.ids import Acknowledged
from faultline.audit.walk import Tell
from faultline.cli.exit_codes import ERROR, line_of
from faultline.cli.format import clock
from faultline.cli.options import DURATION, CliCommand, told
from faultline.cli.tables import draw, number, prose, toned, word
from faultline.cli.terminal import Terminal
from faultline.errors import ConfigError, FaultlineError, InputError
from faultline.store.driver import handshake
from faultline.store.driver.connect import SCHEMA_QUESTION, connect
from faultline.store.driver.sqlstate import named_errors
from faultline.text.durations import format_duration

VIOLATED: Final = ERROR
COULD_NOT_LOOK: Final = 3

VERDICTS = (word("verdict"), word("invariant"), number("looked at"), prose("what it says"))
EXAMPLES = (word("against"), number("job"), prose("what the rows tell"))


@click.command(cls=CliCommand)
@click.option(
    "--effects", metavar="TABLE", help="Your table with columns job_id and token: is it as the ledger says?"
)
@click.option(
    "--ids",
    metavar="FILE",
    help="Ids that enqueue answered with, one a line or JSON lines: is each there?",
)
@click.option("--limit-time", type=DURATION, default="60s", show_default=True, help="Look no longer.")
@click.option(
    "--bound", type=DURATION, default=format_duration(BOUND), show_default=True,
    help="A lease may stay so long past its end.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
@told
def command(
    terminal: Terminal,
    effects: str | None,
    ids: str | None,
    limit_time: timedelta,
    bound: timedelta,
    as_json: bool,
) -> int:
    """Check every invariant on the rows of a live database; it changes nothing and blocks no session.

    One read-only snapshot, walked by ranges of job ids. Exits with 0 when everything holds, 1 when something
    is violated, 3 when it could not look, or not at everything within the time.
    """
    terminal.json = terminal.json or as_json
    acknowledged = _kept_ids(ids) if ids else {}
    try:
        report = _examined(
            terminal, effects=effects, acknowledged=acknowledged, limit=limit_time, bound=bound
        )
    except (InputError, ConfigError):
        raise
    except (FaultlineError, psycopg.Error) as error:
        click.echo(f"faultline: could not look: {line_of(error)}", err=True)
        return COULD_NOT_LOOK
    terminal.show(document(report), lambda: _drawn(report))
    if report.violated:
        return VIOLATED
    return 0 if report.complete else COULD_NOT_LOOK


def _kept_ids(name: str) -> Acknowledged:
    """The ids that the producer kept, from a file or with - from standard input; read before the database."""
    try:
        with click.open_file(name, encoding="utf-8") as file:
            return read_ids(file, name)
    except UnicodeDecodeError:
        raise InputError(f"--ids {name[:200]!a} cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise InputError(f"--ids {name[:200]!a} cannot be read: {error.strerror or error}") from None


def _examined(terminal: Terminal, **asked: Any) -> AuditReport:
    dsn = terminal.settings().require_dsn()
    with connect(dsn, prepare_threshold=None) as conn, named_errors():
        _greet(conn)
        with _progress(terminal) as tell:
            return examine(conn, tell=tell, **asked)


def _greet(conn: psycopg.Connection[Any]) -> None:
    """A connection that only reads may use a standby, and a role that is read-only by default."""
    row = conn.execute(handshake.QUESTION).fetchone()
    assert row is not None
    version, _, installed, allowed, role = row
    handshake.judge(version, False, installed, allowed, role)
    handshake.judge_schema(conn.execute(SCHEMA_QUESTION).fetchone())


@contextmanager
def _progress(terminal: Terminal) -> Iterator[Tell]:
    """A bar on a terminal, silence elsewhere."""
    silent = terminal.quiet or not terminal.err.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal.err, transient=True, disable=silent) as progress:
        bar = progress.add_task("looking at the jobs", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=max(total, 1))


def document(report: AuditReport) -> dict[str, Any]:
    """The report as JSON has it."""
    return {
        "holds": report.holds,
        "complete": report.complete,
        "standby": report.standby,
        "moment": report.moment.isoformat(),
        "verdicts": [asdict(verdict) for verdict in report.verdicts],
    }


def _drawn(report: AuditReport) -> Group:
    parts = [draw(VERDICTS, (_line(verdict, report) for verdict in report.verdicts), "")]
    against = [(verdict.name, example) for verdict in report.verdicts for example in verdict.examples]
    beside = [(verdict.name, example) for verdict in report.verdicts for example in verdict.remarks]
    if against:
        parts += [Text(), draw(EXAMPLES, (_row(name, "bad", example) for name, example in against), "")]
    if beside:
        parts += [
            Text("\nremarks, which may have a harmless reason:", style="dim"),
            draw(EXAMPLES, (_row(name, "warn", example) for name, example in beside), ""),
        ]
    return Group(*parts, Text(), _summary(report))


def _line(verdict: AuditVerdict, report: AuditReport) -> tuple[object, ...]:
    if not verdict.holds:
        grade = toned("VIOLATED", like="bad")
    elif report.complete:
        grade = toned("holds", like="ok")
    else:
        grade = toned("so far", like="warn")
    counted = f" ({verdict.found} against it)" if verdict.found else ""
    return grade, verdict.name, verdict.looked_at, INVARIANTS[verdict.name] + counted


def _row(name: str, tone: str, example: Counterexample) -> tuple[object, ...]:
    return toned(name, like=tone), example.job_id, example.told


def _summary(report: AuditReport) -> Text:
    where = " on a standby," if report.standby else ""
    when = f"as of{where} {clock(report.moment)}"
    if report.violated:
        names = ", ".join(verdict.name for verdict in report.violated)
        return Text(f"{names} violated, {when}", style="bold red")
    if not report.complete:
        return Text(f"not everything was looked at: the time ran out, {when}", style="yellow")
    return Text(f"everything holds, {when}", style="green")
