"""`faultline jobs cancel`: end jobs that are no longer wanted."""

from contextlib import suppress

import click

from faultline.bounds import counted
from faultline.cli.jobs.each import for_each
from faultline.cli.options import JOB_ID, CliCommand, told, yes_option
from faultline.cli.terminal import Terminal
from faultline.errors import FaultlineError
from faultline.store import calls


@click.command(cls=CliCommand)
@click.argument("ids", type=JOB_ID, metavar="ID...", nargs=-1, required=True)
@click.option("--reason", help="Kept with the job, for its readers.")
@yes_option
@told
def command(terminal: Terminal, ids: tuple[int, ...], reason: str | None, yes: bool) -> int:
    """End jobs for good. A running one is stopped, and nothing it does can commit any more."""
    named = f"job {ids[0]}" if len(ids) == 1 else counted(len(ids), "job")
    terminal.confirm(f"Cancel {named} for good?", yes)
    with terminal.database() as session:

        def cancel(job_id: int) -> None:
            session.run(calls.cancel(job_id, reason))
            with suppress(FaultlineError):  # a hint to its worker: the next beat brings the same news
                session.run(calls.wake_cancelled([job_id]))

        return for_each(terminal, ids, "cancelled", cancel)
