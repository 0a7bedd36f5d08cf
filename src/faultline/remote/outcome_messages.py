"""Outcomes as `Result` messages and back, field by field: which kinds there are, only the codec knows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, get_args

from faultline import bounds
from faultline.errors import InputError, OutOfBounds
from faultline.outcome import Outcome
from faultline.remote.call_messages import milliseconds
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.worker.settlement.outcome_codec import OutcomeKind, OutcomeRecord, from_record, to_record
from faultline.worker.settlement.settle import as_text

ERROR_CHARS_MAX: Final = 8_192
SIGNATURE_CHARS_MAX: Final = 200

DELAY_MS_MAX: Final = bounds.DELAY_MAX // timedelta(milliseconds=1)

_KINDS: Final[Any] = rpc.Result.DESCRIPTOR.oneofs_by_name["outcome"].fields

FIELDS: Final[dict[str, tuple[tuple[str, bool], ...]]] = {
    kind.name: tuple((field.name, field.has_presence) for field in kind.message_type.fields)
    for kind in _KINDS
}
"""The fields of each kind's message, each with whether it may be left out."""


def write(result: rpc.Result, outcome: Outcome) -> None:
    """Set the outcome of a message, whose other fields name the lease."""
    record = to_record(outcome)
    message = getattr(result, record.kind)
    message.Clear()  # which sets it, too: an outcome may have no other field
    for name, attribute, convert in _WRITERS[record.kind]:
        value = getattr(record, attribute)
        if value is not None:
            setattr(message, name, value if convert is None else convert(value))


def read(result: rpc.Result, kind: Any) -> Outcome:
    """The outcome of a message of this kind; InputError where a field of it breaks a rule."""
    message = getattr(result, kind)
    if kind in _WITH_DOCUMENT and not message.ByteSize():
        return _EMPTY[kind]
    values: dict[str, Any] = {}
    for name, is_optional, attribute, convert in _READERS[kind]:
        if not is_optional or message.HasField(name):
            values[attribute] = convert(getattr(message, name))
    return from_record(OutcomeRecord(kind, **values))


def document_of(result: rpc.Result, kind: str) -> bytes:
    """The document in a message of this kind, as it came; mostly there is none."""
    document: bytes = getattr(result, kind).result if kind in _WITH_DOCUMENT else b""
    return document


def _document(data: bytes) -> str | None:
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        raise InputError("a result is JSON in UTF-8; this one is no UTF-8") from None


def _delay(ms: int) -> timedelta:
    if ms > DELAY_MS_MAX:
        raise OutOfBounds(f"delay_ms is {ms} ms; it goes to {DELAY_MS_MAX}")
    return timedelta(milliseconds=ms)


_CONVERTERS: Final[dict[str, tuple[str, Callable[[Any], Any] | None, Callable[[Any], Any]]]] = {
    "result": ("result", str.encode, _document),
    "error": ("error", None, lambda text: as_text(text, ERROR_CHARS_MAX) or None),
    "reason": ("reason", None, as_text),
    "signature": ("signature", None, lambda text: as_text(text, SIGNATURE_CHARS_MAX)),
    "alone": ("alone", None, bool),
    "max_crashes": ("max_crashes", None, bounds.check_max_crashes),
    "delay_ms": ("delay", milliseconds, _delay),
}
"""By the field of a message: that of a record, and what is done to a value that is sent, or was received.

Foreign text is cut and made safe for the database; a foreign number is checked.
"""

_WRITERS: Final = {
    kind: tuple((name, *_CONVERTERS[name][:2]) for name, _ in fields) for kind, fields in FIELDS.items()
}
_READERS: Final = {
    kind: tuple(
        (name, is_optional, _CONVERTERS[name][0], _CONVERTERS[name][2]) for name, is_optional in fields
    )
    for kind, fields in FIELDS.items()
}
_WITH_DOCUMENT: Final = frozenset(kind for kind, fields in FIELDS.items() if ("result", False) in fields)
_EMPTY: Final = {kind: from_record(OutcomeRecord(kind)) for kind in get_args(OutcomeKind)}
"""What a message says in which no field is set: most handlers return nothing."""
