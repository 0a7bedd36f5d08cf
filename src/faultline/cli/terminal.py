"""Terminal: everything a command says, asks and connects to goes through here."""

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

if TYPE_CHECKING:  # the drawing comes late: a worker that draws nothing should not carry it
    from psycopg import Connection
    from rich.console import Console, RenderableType

    from faultline.store.call import Call

T = TypeVar("T")

PIPE_WIDTH: Final = 10_000
"""Wide enough that nothing is cut or wrapped for a program that reads us."""


@dataclass
class Wishes:
    """What was asked of every command, before its name or after it."""

    dsn: str | None = None
    output: str = "table"
    no_color: bool = False
    quiet: bool = False


class Session:
    """One connection that a command does its calls over."""

    def __init__(self, conn: "Connection[Any]") -> None:
        self._conn = conn

    def run(self, call: "Call[T]") -> T:
        from faultline.store.run import Store

        return Store.run_in(self._conn, call)

    def act(self, call: "Call[T]", reason: str | None) -> T:
        """Carry a call that the database notes as an act, with the reason for it, if there is one."""
        from faultline.store import calls

        if reason is None:
            return self.run(call)
        with self._conn.transaction():
            self.run(calls.act_as(None, reason))
            return self.run(call)


class Terminal:
    """Where a command's words go: tables or JSON to stdout, questions and remarks to stderr."""

    def __init__(self, wishes: Wishes) -> None:
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
        """A console for those who draw for themselves, as drills and the demo do."""
        from rich.console import Console

        return Console(no_color=self.no_color or None, quiet=self.quiet, highlight=False)

    @property
    def is_interactive(self) -> bool:
        """Whether somebody sits there and can be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def is_watched(self) -> bool:
        """Whether somebody reads along; a worker of a group has no stdin, so nobody there can be asked."""
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
        """One line about what was done; programs that asked for JSON, or for quiet, are spared it."""
        if not self.quiet and not self.json:
            self.out.print(printable(text), style=style)

    def remark(self, text: str) -> None:
        """A line beside the data, for people: never in the way of a pipe."""
        if not self.quiet:
            self.err.print(printable(text), style="dim")

    def confirm(self, question: str, yes: bool) -> None:
        """Ask before something that cannot be taken back; where nobody can be asked, refuse."""
        if yes:
            return
        if not self.is_interactive:
            raise click.UsageError(f"{question} Nobody is here to be asked; say --yes if you mean it")
        click.confirm(printable(question), abort=True, err=True)

    def settings(self) -> Settings:
        """Where the database is: --dsn, then FAULTLINE_DSN, then a `faultline dev` in this folder."""
        settings = Settings.read(dsn=self.dsn)
        if settings.dsn is None:
            from faultline.cli.dev_server import running_dsn

            settings = Settings.read(dsn=running_dsn())
        return settings

    @contextmanager
    def database(self) -> Iterator[Session]:
        """A connection to a database that is known to have our schema."""
        from faultline.store.connect import connect, greet

        with connect(self.settings().require_dsn(), prepare_threshold=None) as conn:
            greet(conn)
            yield Session(conn)
