"""`faultline`: the list of commands, and the one place where errors become a line and an exit code."""

import os
import sys
from importlib import import_module
from typing import Any, Final

import click

from faultline import __version__
from faultline.cli.failing import exit_code_of, line_of
from faultline.cli.interrupts import keep_interrupts
from faultline.cli.options import Group

COMMANDS: Final = (
    "dev", "demo", "drill", "worker", "server", "migrate", "enqueue", "jobs", "queues", "workers", "ledger",
    "audit", "keys", "roles", "acts", "metrics", "conformance", "bench", "health", "doctor", "version",
)  # fmt: skip
"""In the order a newcomer meets them, which is also the order of the help."""


EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 error, 2 not understood and nothing done, 3 a check failed, 130 interrupted. What "
    "1 and 3 mean of `worker`, `health` and `audit` is in their help."
)


class Root(Group):
    """Imports a command's file when it is asked for: a worker should not carry the tables of `jobs list`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def hint_for(self, ctx: click.Context, name: str) -> str:
        """A word that is a command of one of the groups, such as `list` or `pause`."""
        groups = {group: self.get_command(ctx, group) for group in ("jobs", "queues", "keys")}
        homes = [
            f"`faultline {group} {name}`"
            for group, command in groups.items()
            if isinstance(command, click.Group) and name in command.commands
        ]
        return f"; did you mean {' or '.join(homes)}?" if homes else ""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"faultline.cli.{cmd_name}").command
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and leave with its exit code; an error is one line on stderr, never a traceback."""
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except BrokenPipeError:
            # Whoever read our output has gone, as `head` does; Python must not complain of it as it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except BaseException as error:
            if os.environ.get("FAULTLINE_DEBUG") == "1" and isinstance(error, Exception):
                raise
            if line := line_of(error):
                click.echo(f"faultline: {line}", err=True)
            sys.exit(exit_code_of(error))
        sys.exit(code if isinstance(code, int) else 0)


@click.version_option(__version__, prog_name="faultline", message="%(prog)s %(version)s")
@click.group(cls=Root, epilog=EXIT_CODES)
def root() -> None:
    """Faultline: a job queue on PostgreSQL whose jobs survive their workers."""


def main() -> None:
    """Run what the command line says."""
    keep_interrupts()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter should not cost the command.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    root.main(prog_name="faultline")
