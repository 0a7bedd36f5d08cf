"""`faultline bench`: how this machine does what a queue does, scenario by scenario."""

import click

from faultline.cli.lab.bench.draw import draw_command
from faultline.cli.lab.bench.run import all_command, command_of
from faultline.cli.options import CommandGroup, told
from faultline.cli.tables import draw, prose, word
from faultline.cli.terminal import Terminal
from faultline.lab.bench.scenario_registry import SCENARIOS

COLUMNS = (word("scenario"), prose("what is measured"))


@click.group(cls=CommandGroup, invoke_without_command=True)
@told
def command(terminal: Terminal) -> None:
    """Measure on this machine; without a name, list the scenarios.

    On an embedded server with fsync on; with --dsn on that one, in databases of its own, dropped after.
    FAULTLINE_DSN is not looked at.
    """
    if click.get_current_context().invoked_subcommand is None:
        listed = [{"name": each.name, "summary": each.summary} for each in SCENARIOS.values()]
        terminal.show(listed, lambda: draw(COLUMNS, (tuple(each.values()) for each in listed), ""))


for scenario in SCENARIOS.values():
    command.add_command(command_of(scenario))
command.add_command(all_command)
command.add_command(draw_command)
