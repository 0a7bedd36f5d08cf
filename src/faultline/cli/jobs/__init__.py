"""`faultline jobs`: read jobs, and act on them."""

import click

from faultline.cli.jobs import cancel, list, replay, retry, show
from faultline.cli.options import CommandGroup


@click.group(cls=CommandGroup)
def command() -> None:
    """Look at jobs: list, show; decide about them: cancel, retry, replay."""


command.add_command(list.command, "list")
command.add_command(show.command, "show")
command.add_command(cancel.command, "cancel")
command.add_command(retry.command, "retry")
command.add_command(replay.command, "replay")
