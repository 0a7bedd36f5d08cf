"""The options of every command: the database, the output; and the types of option values."""

import logging
import os
from collections.abc import Callable
from datetime import datetime
from functools import update_wrapper
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import click

from faultline.cli.terminal import OutputOptions, Terminal
from faultline.config import JOBS_MAX_MAX, mistyped, no_setting
from faultline.errors import FaultlineError
from faultline.text.durations import parse_duration
from faultline.text.suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


class Everywhere(click.Option):
    """An option that may stand before the command or after it; the last one counts."""


def everywhere() -> list[click.Parameter]:
    """Fresh copies, because click ties a parameter to its command."""
    return [
        _wish("--dsn", metavar="DSN", help="The database; FAULTLINE_DSN, or a running `faultline dev`."),
        _wish(
            "--output", type=click.Choice(["table", "json"]),
            help="JSON gives ids as numbers and tokens as strings: JavaScript loses integers over 2^53.",
        ),
        _wish("--no-color", is_flag=True, default=None, help="No colours; NO_COLOR says the same."),
        _wish("--quiet", is_flag=True, default=None, help="Print what was asked for, and nothing about it."),
    ]  # fmt: skip


def _wish(flag: str, **options: Any) -> Everywhere:
    return Everywhere([flag], expose_value=False, callback=_remember, **options)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    _refuse_empty(ctx, param, value)
    wishes = ctx.find_root().ensure_object(OutputOptions)
    if value is not None and param.name:
        setattr(wishes, param.name, value)


def _refuse_empty(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """A shell variable that is not set must not mean another database, no check, or every queue."""
    if isinstance(param, click.Option) and (value == "" or (isinstance(value, tuple) and "" in value)):
        raise click.BadParameter("it is empty; give it a value, or leave it out", ctx, param)


class CliCommand(click.Command):
    """A command of ours: it takes the common options, and lists them apart."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params += everywhere()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        for param in self.params:
            _refuse_empty(ctx, param, ctx.params.get(param.name or ""))
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format_apart(self, ctx, formatter)


class CommandGroup(click.Group):
    """A command with commands of its own, listed in the order in which they were written."""

    command_class = CliCommand

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params += everywhere()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = str(args[0])
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            hint = self.hint_for(ctx, name) or did_you_mean(name, self.list_commands(ctx))
            if name == "help":
                hint = f"; write `{ctx.command_path} --help`"
            raise click.UsageError(f"there is no command {name[:60]!a}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def hint_for(self, ctx: click.Context, name: str) -> str:
        """The suggestions for a word that is no command of this group."""
        return ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format_apart(self, ctx, formatter)
        self.format_commands(ctx, formatter)


CommandGroup.group_class = CommandGroup


def _format_apart(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    params = command.get_params(ctx)
    for title, apart in (("Options", False), ("Options of every command", True)):
        lines = [
            record
            for param in params
            if isinstance(param, click.Option)
            and isinstance(param, Everywhere) is apart
            and (record := param.get_help_record(ctx))
        ]
        if lines:
            with formatter.section(title):
                formatter.write_dl(lines)


def told(command: Callable[Concatenate[Terminal, P], R]) -> Callable[P, R]:
    """Pass a command its terminal, as its first argument."""

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        ctx = click.get_current_context()
        terminal = Terminal(ctx.find_root().ensure_object(OutputOptions))
        if ctx.info_name not in _TELL_IN_THEIR_LOG:
            _remark_mistyped(terminal)
        return command(terminal, *args, **kwargs)

    return update_wrapper(run, command)


_TELL_IN_THEIR_LOG: Final = ("worker", "server")


def _remark_mistyped(terminal: Terminal) -> None:
    """Warn of variables that are nearly a setting; without any DSN the error itself names such a variable."""
    for name, meant in mistyped().items():
        if meant != "FAULTLINE_DSN" or _finds_a_database(terminal):
            terminal.remark(no_setting(name, meant))


def _finds_a_database(terminal: Terminal) -> bool:
    from faultline.cli.serve.dev_server import running_dsn

    return bool(terminal.dsn or os.environ.get("FAULTLINE_DSN") or running_dsn())


def warn_of_mistyped(log: logging.Logger) -> None:
    """The same for a command with a log, once the log is set up."""
    for name, meant in mistyped().items():
        log.warning("%s", no_setting(name, meant))


def refuse_a_dsn(terminal: Terminal, name: str) -> None:
    """For a command with a database of its own: a typed --dsn would be ignored without a word."""
    if terminal.dsn is not None:
        raise click.UsageError(f"`faultline {name}` brings its own database; leave --dsn out")


class _Parsed(click.ParamType[Any]):
    """A value that one of our own functions reads; its error becomes a usage error with the same text."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except FaultlineError as error:
            self.fail(str(error), param, ctx)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise FaultlineError(
            f"{text[:60]!a} is not a moment; write 2030-01-31T09:00+01:00, or with a Z at the end for UTC"
        ) from None
    if moment.tzinfo is None:
        whole_day = moment.isoformat(timespec="minutes")
        raise FaultlineError(
            f"{text[:60]!a} does not say in which time zone, and would be another moment on another machine; "
            f"write {whole_day}Z for UTC, or {whole_day}{_offset_here(moment)} for the time here"
        )
    return moment


def _offset_here(moment: datetime) -> str:
    """The local offset from UTC at that moment, such as +01:00."""
    try:
        return moment.astimezone().isoformat()[-6:]
    except (OverflowError, ValueError, OSError):  # the first or last year of datetime
        return "+00:00"


def parsed(name: str, parse: Callable[[str], Any]) -> click.ParamType[Any]:
    """A type of value read by a function of ours."""
    return _Parsed(name, parse)


def whole(lowest: int, highest: int, name: str = "n") -> click.ParamType[Any]:
    """A whole number within bounds; click's own type would print the bounds into every line of help."""

    def read(text: str) -> int:
        digits = text.strip().removeprefix("-")
        if len(digits) > 19 or not (digits.isascii() and digits.isdigit() and lowest <= int(text) <= highest):
            raise FaultlineError(f"{text[:60]!a} is not a whole number from {lowest} to {highest}")
        return int(text)

    return parsed(name, read)


DURATION: Final = parsed("duration", parse_duration)
MOMENT: Final = parsed("moment", _moment)
JOB_ID: Final = whole(1, 2**63 - 1, "id")
LIMIT: Final = whole(1, 1_000)
COUNT: Final = whole(1, JOBS_MAX_MAX)
PROCESSES: Final = whole(1, 256)


def _address(text: str) -> Any:
    from faultline.metrics.endpoint import MetricsAddress  # a command without an endpoint need not load it

    return MetricsAddress.read(text)


ADDRESS: Final = parsed("address", _address)


def reason_option(command: Callable[P, R]) -> Callable[P, R]:
    """For commands that are recorded as acts."""
    return click.option("--reason", help="Why; shown by `faultline acts`.")(command)


def yes_option(command: Callable[P, R]) -> Callable[P, R]:
    """For destructive commands: they ask first, and without a terminal to ask they refuse."""
    return click.option(
        "--yes", is_flag=True, help="Do it without asking; needed where there is no terminal."
    )(command)
