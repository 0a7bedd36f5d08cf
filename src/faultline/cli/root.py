"""`faultline`: the list of commands, and the one place that turns errors into a line and an exit code."""

import os
import sys
from importlib import import_module
from typing import Any, Final

import click

from faultline import __version__
from faultline.cli.exit_codes import exit_code_of, line_of
from faultline.cli.interrupts import keep_interrupts
from faultline.cli.options import CommandGroup

COMMANDS: Final = (
    "dev", "demo", "drill", "worker", "server", "migrate", "enqueue", "jobs", "queues", "limits", "schedules",
    "workers", "ledger", "audit", "keys", "roles", "acts", "metrics", "conformance", "bench", "health",
    "doctor", "version",
)  # fmt: skip
"""In the order in which new users need them, which is also the order of the help."""

HOMES: Final = {
    **dict.fromkeys(("dev", "worker", "server", "metrics"), "serve"),
    **dict.fromkeys(("demo", "drill", "bench", "conformance"), "lab"),
    **dict.fromkeys(
        (
            "migrate",
            "queues",
            "limits",
            "schedules",
            "workers",
            "ledger",
            "audit",
            "keys",
            "roles",
            "acts",
            "health",
            "doctor",
            "version",
        ),
        "manage",
    ),
    "enqueue": "jobs",
}
"""The folder of each command's file; `jobs` is one of its own."""


EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 error, 2 not understood and nothing done, 3 a check failed, 130 interrupted. What "
    "1 and 3 mean of `worker`, `health` and `audit` is in their help."
)


class Root(CommandGroup):
    """Imports a command's file when it is used: a worker should not load the tables of `jobs list`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def hint_for(self, ctx: click.Context, name: str) -> str:
        """A word that is a command of one of the groups, such as `list` or `pause`."""
        names = ("jobs", "queues", "limits", "schedules", "keys")
        groups = {group: self.get_command(ctx, group) for group in names}
        homes = [
            f"`faultline {group} {name}`"
            for group, command in groups.items()
            if isinstance(command, click.Group) and name in command.commands
        ]
        return f"; did you mean {' or '.join(homes)}?" if homes else ""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        home = f"{HOMES[cmd_name]}.{cmd_name}" if cmd_name in HOMES else cmd_name
        command: click.Command = import_module(f"faultline.cli.{home}").command
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and leave with its exit code; an error is one line on stderr, never a traceback."""
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except BrokenPipeError:
            # The reader of our output has gone, as `head` does; Python must not print an error at its end.
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
        # A terminal that cannot show a letter should not stop the command.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    root.main(prog_name="faultline")
