"""`faultline drill`: rehearse a fault against real processes, and read the verdict."""

from pathlib import Path

import click

from faultline.cli.options import CliCommand, told, whole
from faultline.cli.tables import draw, prose, word
from faultline.cli.terminal import Terminal
from faultline.lab.drills.registry import DRILLS
from faultline.lab.drills.run_drill import RUNS_MAX, DrillRequest, run_drills

COLUMNS = (word("drill"), prose("what happens"), word("needs"))
ALL = "all"


@click.command(cls=CliCommand)
@click.argument("name", required=False, type=click.Choice([*DRILLS, ALL]), metavar="[NAME|all]")
@click.option("--runs", type=whole(1, RUNS_MAX), default=1, show_default=True, help="How many times each.")
@click.option("--report", type=click.Path(dir_okay=False, writable=True, path_type=Path), metavar="FILE",
              help="Write an HTML page with timelines, verdicts and counts.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document of all verdicts instead.")
@click.option("--log-json", is_flag=True, help="Print the structured events instead, one JSON object a line.")
@click.option("--in-place", is_flag=True,
              help="With --dsn: in that very database, in a queue and a schema of its own.")  # fmt: skip
@click.option("--through-server", is_flag=True,
              help="Before the database stands a server; workers know only its URL and a key.")  # fmt: skip
@told
def command(
    terminal: Terminal,
    name: str | None,
    runs: int,
    report: Path | None,
    as_json: bool,
    log_json: bool,
    in_place: bool,
    through_server: bool,
) -> int:
    """Rehearse a fault against real processes, or all of them; without a name, list the drills.

    On an embedded server, or with --dsn on that one, in a database of its own that is dropped after, or in a
    corner of the one named; FAULTLINE_DSN is not looked at. Drills that stop their server are skipped there,
    and say so. Ends with trace, timeline and verdict; 0 only if every promise was kept and every fault
    happened, else 3.
    """
    if name is None:
        drills = [{"name": one.name, "summary": one.summary, "needs": one.needs} for one in DRILLS.values()]
        terminal.show(drills, lambda: draw(COLUMNS, (tuple(drill.values()) for drill in drills), ""))
        return 0
    wish = DrillRequest(
        dsn=terminal.dsn, runs=runs, in_place=in_place, log_json=log_json,
        as_json=(as_json or terminal.json) and not log_json, report=report,
        through_server=through_server,
    )  # fmt: skip
    return run_drills(list(DRILLS) if name == ALL else [name], wish, terminal.stage())
