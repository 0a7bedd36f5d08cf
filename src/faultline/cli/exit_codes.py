"""Errors at a terminal: one line, and an exit code."""

from typing import Final

import click

from faultline.errors import ConfigError, FaultlineError, InputError, UnknownTask
from faultline.telemetry import printable, scrub

ERROR: Final = 1
USAGE: Final = 2
CHECK_FAILED: Final = 3
INTERRUPTED: Final = 130


def exit_code_of(error: BaseException) -> int:
    """2 when the input or the settings cannot work and nothing was done, 1 for everything else."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else ERROR
        case _ if is_interrupted(error):
            return INTERRUPTED
        case click.UsageError() | InputError() | ConfigError() | UnknownTask():
            return USAGE
    return ERROR


def is_interrupted(error: BaseException) -> bool:
    """Whether it is a Ctrl-C, or was raised during one: a cleanup that fails must not hide the Ctrl-C.

    >>> is_interrupted(KeyboardInterrupt()), is_interrupted(click.Abort())
    (True, False)
    """
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        if isinstance(following, KeyboardInterrupt):
            return True
        seen.append(following)
        following = following.__cause__ or following.__context__
    return False


def line_of(error: BaseException) -> str:
    """The error as one line, safe to show: no password, no control characters; may be empty."""
    match error:
        case click.exceptions.Exit() | SystemExit():
            return ""
        case KeyboardInterrupt():
            return "interrupted"
        case click.Abort() if is_interrupted(error):
            return "interrupted"
        case _ if is_interrupted(error):
            return _one_line(f"interrupted, and what had to be ended gave an error: {error}")
        case click.Abort():
            return "nothing was done"
        case click.UsageError():
            return _one_line(f"{_period(error.format_message())} {_help(error)}".rstrip())
        case click.ClickException():
            return _one_line(error.format_message())
        case FaultlineError():
            return _one_line(str(error))
    said = f"{type(error).__name__}: {error}"
    return _one_line(f"{said} (not an error we foresaw; FAULTLINE_DEBUG=1 shows where it came from)")


def _help(error: click.UsageError) -> str:
    return f"See `{error.ctx.command_path} --help`." if error.ctx else ""


def _period(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _one_line(text: str) -> str:
    return printable(scrub(" ".join(text.split())))
