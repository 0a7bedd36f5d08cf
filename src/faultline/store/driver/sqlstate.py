"""The only table from SQLSTATE to an error of Faultline."""

import json
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

import psycopg
from psycopg_pool import PoolTimeout

from faultline import errors

# Constraint names are sentences; these prefixes give the kind of error.
_NAMES = (
    "a_queue_name",
    "a_task_name",
    "a_key_is_1_to",
    "a_key_has",
    "a_workers_name",
    "a_schedule_name",
    "an_app_name",
)
_DOCUMENTS = ("a_document",)

_STRAYS = "ledger_default"
"""The partition for entries without a range; while their range is created, it refuses entries."""

DETAIL_CHARS_MAX = 60

_UNAVAILABLE = ("08", "53", "57P")
_NO_REPLY = (psycopg.DatabaseError, psycopg.InternalError)
_BAD_JSON = ("22P02", "22P05", "22021", "22030", "22032")
_BAD_NUMBER = ("22003", "22007", "22008", "22P03", "2201W", "2201X")

# The server's message for a number that is too large or not whole: every number in a call is whole and below
# 2^63, and the two that bound a batch are below 2^31.
_WRONG_NUMBER = re.compile(r"(\w+) => (?:numeric|double precision)|(most|room) => bigint")


class ErrorFacts(NamedTuple):
    """An error of the server, as any driver has it."""

    state: str
    message: str
    detail: str | None = None
    hint: str | None = None
    constraint: str | None = None
    table: str | None = None
    column: str | None = None
    source: str | None = None
    """The function of the server that raised it, the same in every language of its messages."""

    @classmethod
    def of(cls, fault: Any) -> "ErrorFacts":
        """Of an error of psycopg, or of psycopg2 below another library."""
        state = getattr(fault, "sqlstate", None) or getattr(fault, "pgcode", None) or ""
        diag = getattr(fault, "diag", None)
        if diag is None:
            return cls(state, str(fault))
        return cls(
            state, diag.message_primary or str(fault), diag.message_detail, diag.message_hint,
            diag.constraint_name, diag.table_name, diag.column_name, diag.source_function,
        )  # fmt: skip

    @property
    def line(self) -> str:
        """The first line of the message, with its hint, if any."""
        said = self.message.strip().splitlines()
        line = said[0] if said else self.state
        return f"{line}. {self.hint}" if self.hint else line


def connect_reason(fault: BaseException) -> str:
    """The reason of a failed connection, in libpq's words: the last line that gives one.

    Indented lines ask whether the server runs; another line says where the password came from.

    >>> connect_reason(psycopg.OperationalError("port 5432 failed: Connection refused\\n\\tIs it running?"))
    'port 5432 failed: Connection refused'
    """
    told = [line for line in str(fault).splitlines() if line.strip() and not line[0].isspace()]
    reasons = [line for line in told if not line.startswith("password retrieved from file")]
    return reasons[-1].strip() if reasons else type(fault).__name__


class named_errors:
    """Replace an error of the driver in the block by an error of Faultline that says what is now true.

    A class, since a generator would cost each block a microsecond more.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if fault is None:
            return
        if isinstance(fault, PoolTimeout):
            raise errors.CannotConnect(
                f"no connection to the database within the time allowed: {_line(fault)}"
            ) from fault
        if isinstance(fault, psycopg.Error):
            if (better := named(fault)) is not fault:
                raise better from fault
        elif isinstance(fault, UnicodeEncodeError):
            raise errors.BadDocument(
                f"a text holds a character that UTF-8 cannot carry (a lone surrogate) at position "
                f"{fault.start}; remove it"
            ) from fault


def named(fault: psycopg.Error) -> Exception:
    """Faultline's error for an error of the driver; the same error if there is no better one."""
    facts = ErrorFacts.of(fault)
    if not facts.state and isinstance(fault, psycopg.DataError):  # the driver refused it: nothing was sent
        return errors.BadDocument(f"{_line(fault)}; remove or escape it")
    if not facts.state and _is_of_the_line(fault):
        return went_away(_line(fault))
    return named_by(facts) or fault


def named_by(facts: ErrorFacts) -> Exception | None:
    """Faultline's error for what a server said, whichever driver heard it; None if there is none."""
    state = facts.state
    ours = _OWN.get(state)
    if ours is not None:
        return ours(facts)
    if state == "23514" and facts.table == _STRAYS and not facts.constraint:
        return errors.ServerUnavailable(
            "the ledger was given a new range in this moment; nothing was written; try again"
        )
    if state == "23514":
        return _broken_bound(facts)
    if state == "23502":
        return errors.InputError(f"refused: {facts.column} is missing (null); give it a value")
    if state.startswith(_BAD_JSON):
        return errors.BadDocument(
            f"{facts.line}{_reason(facts)}; PostgreSQL cannot hold this text, remove or escape it"
        )
    if state.startswith(_BAD_NUMBER):
        return errors.OutOfBounds(f"{facts.line}; use a value within its bounds")
    if state == "42883" and (wrong := _WRONG_NUMBER.search(facts.message)):
        name, bits = wrong[1] or wrong[2], 64 if wrong[1] else 32
        return errors.OutOfBounds(
            f"{name} does not fit in {bits} bits, or is not whole; use a number within its bounds"
        )
    return _trouble(facts)


def went_away(reason: str) -> errors.ServerUnavailable:
    """The connection broke, or the server refused it."""
    return errors.ServerUnavailable(f"the server went away or refused: {reason}; try again")


def was_swapped(fault: psycopg.Error) -> bool:
    """Whether a migration replaced the functions during a call: it rolled back whole and can be repeated."""
    return fault.sqlstate == "XX000" and "cache lookup failed" in str(fault)


def _trouble(facts: ErrorFacts) -> Exception | None:
    """Errors of the server, the schema or the role, not of the call's arguments."""
    state = facts.state
    if state == "25006" or "recovery is in progress" in facts.message:
        return errors.ReadOnlyServer(
            "the server is read-only (a standby, or default_transaction_read_only is on); "
            "nothing was written; connect to the primary"
        )
    if state == "42501":
        return errors.PermissionDenied(f"{facts.line}; {_what_it_needs(facts)}")
    if state in ("3F000", "42883", "42P01", "42704", "42703"):
        return errors.SchemaOutdated(
            f"the database lacks something this version of Faultline calls ({facts.line}); "
            "run `faultline migrate`"
        )
    if state == "42P05":
        return errors.ConfigError(
            f"{facts.line}: a pooler shares sessions among its clients, though FAULTLINE_POOLER is none; "
            "nothing was done; set FAULTLINE_POOLER=transaction, or connect to the server itself"
        )
    return went_away(facts.line) if state.startswith(_UNAVAILABLE) else None


def _what_it_needs(facts: ErrorFacts) -> str:
    if facts.source == "CreateRole":
        return (
            "this login may not make roles; connect as a superuser, or give it the right: "
            "`alter role LOGIN createrole` (CREATEROLE)"
        )
    return "grant the role what it needs, or connect as another"


def _is_of_the_line(fault: psycopg.Error) -> bool:
    """Whether an error without a state comes from the connection: it broke, or the bytes were no reply."""
    return isinstance(fault, psycopg.OperationalError) or type(fault) in _NO_REPLY


def _broken_bound(facts: ErrorFacts) -> errors.InputError:
    name = facts.constraint or ""
    sentence = name.replace("_", " ")
    if name.startswith(_NAMES):
        return errors.BadName(f"refused: {sentence}")
    if name.startswith(_DOCUMENTS):
        return errors.BadDocument(f"refused: {sentence}")
    return errors.OutOfBounds(f"refused: {sentence}")


def lease_lost(facts: ErrorFacts) -> errors.LeaseLost:
    """LS001 carries its facts as JSON in the detail; tokens travel as strings."""
    told: dict[str, Any] = json.loads(facts.detail or "{}")
    current = told.get("current_token")
    return errors.LeaseLost(
        job_id=int(told.get("job_id", 0)),
        token=int(told.get("token", 0)),
        current_token=None if current is None else int(current),
        reason=told.get("reason", "gone"),
    )


def _reason(facts: ErrorFacts) -> str:
    """The server's detail, if it is short: a long one would quote more of the text than its error."""
    detail = facts.detail or ""
    return f" ({detail.rstrip('.')})" if 0 < len(detail) <= DETAIL_CHARS_MAX else ""


def _line(fault: BaseException) -> str:
    """The first line of the message, with its hint, if any."""
    diag = getattr(fault, "diag", None)
    said = (getattr(diag, "message_primary", None) or str(fault)).strip().splitlines()
    hint = getattr(diag, "message_hint", None)
    line = said[0] if said else type(fault).__name__
    return f"{line}. {hint}" if hint else line


_OWN: dict[str, Callable[[ErrorFacts], Exception]] = {
    "LS001": lease_lost,
    "LS002": lambda facts: errors.KeyConflict(facts.line),
    "LS003": lambda facts: errors.JobNotFound(facts.line),
    "LS004": lambda facts: errors.WrongState(facts.line),
    "LS005": lambda facts: errors.OutOfBounds(facts.line),
    "LS007": lambda facts: errors.QueueFull(facts.line),
    "LS006": lambda facts: errors.InSavepoint(facts.line.replace("savepoint => true", "savepoint=True")),
}
