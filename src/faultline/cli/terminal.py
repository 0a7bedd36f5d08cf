"""Terminal: the output, the questions and the connection of every command."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from faultline.config import Settings
from faultline.telemetry import printable

if TYPE_CHECKING:  # rich is imported late: a worker that draws nothing should not load it
    from psycopg import Connection
    from rich.console import Console, RenderableType

    from faultline.store.call import Call

T = TypeVar("T")

PIPE_WIDTH: Final = 10_000
"""Wide enough that nothing is cut or wrapped for a program that reads the output."""


@dataclass
class OutputOptions:
    """The options of every command, before its name or after it."""

    dsn: str | None = None
    output: str = "table"
    no_color: bool = False
    quiet: bool = False


class CommandSession:
    """One connection for the calls of a command."""

    def __init__(self, conn: "Connection[Any]") -> None:
        self._conn = conn

    def run(self, call: "Call[T]") -> T:
        from faultline.store.pool import Store

        return Store.run_in(self._conn, call)

    def act(self, call: "Call[T]", reason: str | None) -> T:
        """Make a call that the database records as an act, with its reason, if there is one."""
        from faultline.store import calls

        if reason is None:
            return self.run(call)
        with self._conn.transaction():
            self.run(calls.act_as(None, reason))
            return self.run(call)


class Terminal:
    """The streams of a command: tables or JSON to stdout, questions and remarks to stderr."""

    def __init__(self, wishes: OutputOptions) -> None:
        self.dsn = wishes.dsn
        self.json = wishes.output == "json"
        self.quiet = wishes.quiet
        self.no_color = wishes.no_color

    @cached_property
    def out(self) -> "Console":
        return self._console(stderr=False)

    @cached_property
    def err(self) -> "Console":
        return self._console(stderr=True)

    def _console(self, *, stderr: bool) -> "Console":
        from rich.console import Console

        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() else PIPE_WIDTH
        return Console(
            stderr=stderr, width=width, no_color=self.no_color or None, soft_wrap=True,
            highlight=False, markup=False, emoji=False,
        )  # fmt: skip

    def stage(self) -> "Console":
        """A console for commands with drawings of their own, such as drills and the demo."""
        from rich.console import Console

        return Console(no_color=self.no_color or None, quiet=self.quiet, highlight=False)

    @property
    def is_interactive(self) -> bool:
        """Whether stdin and stderr are a terminal, so that a question can be answered."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def is_watched(self) -> bool:
        """Whether stderr is a terminal; a worker of a group has no stdin and can ask no question."""
        return sys.stderr.isatty()

    def show(self, document: Any, drawn: "Callable[[], RenderableType]") -> None:
        """Print data: as JSON for programs, drawn for people."""
        if self.json:
            self.give(document)
        elif self.out.is_terminal:
            self.out.print(drawn(), soft_wrap=False)
        else:
            with self.out.capture() as drawing:
                self.out.print(drawn(), soft_wrap=False)
            # A table fills its last column up; a program that reads lines has no use for the blanks.
            click.echo("\n".join(line.rstrip() for line in drawing.get().splitlines()))

    def give(self, document: Any) -> None:
        """Print JSON; ASCII only, so that no terminal code and no bidi mark gets out of its string."""
        click.echo(json.dumps(document, indent=2, default=str))

    def say(self, text: str, style: str = "") -> None:
        """One line about the work done; omitted for programs that asked for JSON, or for quiet."""
        if not self.quiet and not self.json:
            self.out.print(printable(text), style=style)

    def remark(self, text: str) -> None:
        """A line beside the data, for people: never in the way of a pipe."""
        if not self.quiet:
            self.err.print(printable(text), style="dim")

    def confirm(self, question: str, yes: bool) -> None:
        """Ask before an act that cannot be undone; without a terminal, refuse."""
        if yes:
            return
        if not self.is_interactive:
            raise click.UsageError(f"{question} There is no terminal to ask at; add --yes to confirm")
        click.confirm(printable(question), abort=True, err=True)

    def settings(self) -> Settings:
        """The DSN: --dsn, then FAULTLINE_DSN, then a `faultline dev` in this folder."""
        settings = Settings.read(dsn=self.dsn)
        if settings.dsn is None:
            from faultline.cli.serve.dev_server import running_dsn

            settings = Settings.read(dsn=running_dsn())
        return settings

    @contextmanager
    def database(self) -> Iterator[CommandSession]:
        """A connection to a database that is known to have our schema."""
        from faultline.store.driver.connect import check_server, connect

        with connect(self.settings().require_dsn(), prepare_threshold=None) as conn:
            check_server(conn)
            yield CommandSession(conn)
