"""`faultline drill`: rehearse a fault against real processes, and read the verdict."""

import click

from faultline.cli.options import Command, told, whole
from faultline.cli.tables import draw, prose, word
from faultline.cli.terminal import Terminal
from faultline.drills.registry import DRILLS
from faultline.drills.run import RUNS_MAX, run_drill

COLUMNS = (word("drill"), prose("what happens"))


@click.command(cls=Command)
@click.argument("name", required=False, type=click.Choice(list(DRILLS)), metavar="[NAME]")
@click.option("--runs", type=whole(1, RUNS_MAX), default=1, show_default=True, help="How many times.")
@click.option("--log-json", is_flag=True, help="Print the structured events instead, one JSON object a line.")
@told
def command(terminal: Terminal, name: str | None, runs: int, log_json: bool) -> int:
    """Rehearse a fault against real processes; without a name, list the drills.

    On an embedded server, or with --dsn on that one, in a database of its own that is dropped after;
    FAULTLINE_DSN is not looked at. Ends with trace, timeline and verdict; 0 only if every promise was kept.
    """
    if name is None:
        drills = [{"name": drill.name, "summary": drill.summary} for drill in DRILLS.values()]
        terminal.show(drills, lambda: draw(COLUMNS, (tuple(drill.values()) for drill in drills), ""))
        return 0
    log_json = log_json or terminal.json
    return run_drill(name, dsn=terminal.dsn, runs=runs, log_json=log_json, console=terminal.stage())
