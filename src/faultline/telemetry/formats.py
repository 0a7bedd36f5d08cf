"""The formats of log records: one line of JSON for programs, one readable line for people."""

import json as json_
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from faultline.telemetry.text import printable, scrub

_CONTEXT: Final = ("job_id", "token", "task")
_COLOURS: Final = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m", "DEBUG": "\x1b[2m"}
_RESET: Final = "\x1b[0m"
_INDENT: Final = "    "


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """The event's own facts, or else the job in which the record was made."""
    facts = dict(getattr(record, "facts", {}))
    for name in _CONTEXT:
        value = getattr(record, name, None)
        if value is not None:
            facts.setdefault(name, value)
    return facts


def _said(record: logging.LogRecord) -> str:
    try:
        return scrub(record.getMessage())
    except Exception:  # a log call whose arguments do not fit its text must not lose the line
        return scrub(f"{record.msg!r} {record.args!r}")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `at`, `level`, `event` or `message`, then the facts.

    Everything outside ASCII is escaped, so neither a newline nor a terminal code can get out of its
    string. Tokens and job ids stay numbers below 2^53 and become strings above, as JavaScript needs.

    >>> record = logging.LogRecord("shop", logging.INFO, "f", 1, "hello\\nworld", None, None)
    >>> r'hello\\nworld' in JsonFormatter().format(record)
    True
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        event = getattr(record, "event", None)
        line |= {"event": event} if event else {"message": _said(record)}
        line |= {name: _plain(value) for name, value in _facts(record).items() if name not in line}
        if record.exc_info:
            line["error"] = scrub(self.formatException(record.exc_info))
        return json_.dumps(line, default=lambda value: scrub(str(value)))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    return value


class LineFormatter(logging.Formatter):
    """A readable line: time, level, what, and the facts as `name=value`; control characters spelled out.

    Below it the frames of an error, where it has some, a line each and indented: a line without indent is
    a record, and the text of an error must not look like one.

    >>> record = logging.LogRecord("shop", logging.INFO, "f", 1, "bell\\a", None, None)
    >>> LineFormatter().format(record).endswith("INFO    shop: bell\\\\x07")
    True
    """

    def __init__(self, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        what = getattr(record, "event", None) or f"{record.name}: {_said(record)}"
        named = _facts(record)
        below = scrub(str(named.pop("frames", ""))).splitlines()
        facts = " ".join(f"{name}={scrub(str(value))}" for name, value in named.items())
        line = printable(f"{at} {record.levelname:7} {what} {facts}".rstrip())
        if record.exc_info:
            below += scrub(self.formatException(record.exc_info)).splitlines()
        line = "\n".join([line, *(_INDENT + printable(part) for part in below)])
        start = _COLOURS.get(record.levelname, "") if self._colour else ""
        return f"{start}{line}{_RESET}" if start else line


class _OurHandler(logging.StreamHandler[TextIO]):
    """Ours, so that configuring twice replaces it instead of printing every line twice."""


def configure_logging(
    stream: TextIO | None = None, json: bool | None = None, level: int | str = logging.INFO
) -> logging.Handler:
    """Send log records to a stream: readable on a terminal, JSON lines anywhere else.

    For programs, not for libraries: `faultline worker` calls it, your own app need not.

    >>> import io
    >>> handler = configure_logging(io.StringIO(), level="WARNING")
    >>> type(handler.formatter).__name__
    'JsonFormatter'
    >>> logging.getLogger().removeHandler(handler)
    """
    out = stream or sys.stderr
    on_terminal = out.isatty()
    colour = on_terminal and not os.environ.get("NO_COLOR")
    as_json = not on_terminal if json is None else json
    handler = _OurHandler(out)
    handler.setFormatter(JsonFormatter() if as_json else LineFormatter(colour=colour))
    handler.setLevel(level.upper() if isinstance(level, str) else level)
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _OurHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    if root.level > handler.level or root.level == logging.NOTSET:
        root.setLevel(handler.level)
    return handler


def logging_as_configured() -> tuple[bool, int] | None:
    """The last call of `configure_logging`, as JSON or not and from which level, if it was called at all.

    >>> import io
    >>> handler = configure_logging(io.StringIO(), json=True, level="WARNING")
    >>> logging_as_configured()
    (True, 30)
    >>> logging.getLogger().removeHandler(handler)
    """
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _OurHandler):
            return isinstance(handler.formatter, JsonFormatter), handler.level
    return None
