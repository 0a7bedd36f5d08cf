"""`faultline jobs retry`: make waiting jobs due now."""

import click

from faultline.cli.jobs.each import for_each
from faultline.cli.options import JOB_ID, CliCommand, reason_option, told
from faultline.cli.terminal import Terminal
from faultline.store import calls


@click.command(cls=CliCommand)
@click.argument("ids", type=JOB_ID, metavar="ID...", nargs=-1, required=True)
@reason_option
@click.option("--yes", is_flag=True, help="Taken as `cancel` and `replay` take it; nothing is asked here.")
@told
def command(terminal: Terminal, ids: tuple[int, ...], reason: str | None, yes: bool) -> int:
    """Make jobs that wait for their moment, or for their next attempt, due now.

    Attempts count on; dead jobs are for `replay`.
    """
    with terminal.database() as session:
        return for_each(
            terminal,
            ids,
            "is due now",
            lambda job_id: session.run(calls.wake(session.act(calls.retry_now(job_id), reason))),
        )
