"""`faultline demo`: see a job survive its worker."""

from pathlib import Path

import click

from faultline.cli.options import CliCommand, refuse_a_dsn, told
from faultline.cli.terminal import Terminal
from faultline.lab.drills.demo import run_demo


@click.command(cls=CliCommand)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the timeline to this file, as SVG.",
)
@told
def command(terminal: Terminal, picture: Path | None) -> int:
    """See a job survive its worker: ordinary jobs, then two workers and a write that comes too late.

    Starts a PostgreSQL of its own, needs nothing, leaves nothing behind; 0 only if every promise was kept.
    """
    refuse_a_dsn(terminal, "demo")
    return run_demo(terminal.stage(), picture=picture)
