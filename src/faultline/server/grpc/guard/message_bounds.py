"""Messages as bytes, measured before they are parsed: two bytes of them can become 170 in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError

from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.problems import MALFORMED, TOO_LARGE, RequestRefused

KIB: Final = 1_024
LARGE_BYTES: Final = 64 * KIB
"""A larger message is counted for as long as it is held in memory."""

PROBE_BYTES_MAX: Final = KIB
FIELDS_MAX: Final = 64
LIST_BYTES_MAX: Final = 256 * KIB
LISTED_MAX: Final = 8_000
"""Queues, tasks and lanes of one message together; each of them has a limit of its own as well."""

PROOF_BYTES: Final = 64
"""A lease by its three values, with the fields around it."""

LONG_ITEM_BYTES: Final = 256
"""An item of a list up to this length is not examined: it cannot hold enough to matter."""

VARINT_BYTES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class BoundedField:
    """A field of a message, itself a message whose fields count."""

    fields: Mapping[int, "BoundedField"] = field(default_factory=dict)
    bytes_min: int = 0
    """A shorter one is skipped."""


@dataclass(frozen=True, slots=True)
class MessageBound:
    """The largest length of a message, and its largest number of fields."""

    bytes_max: int
    fields_max: int = FIELDS_MAX
    within: Mapping[int, BoundedField] = field(default_factory=dict)

    def check(self, raw: bytes) -> None:
        """Refuse a message that is too long, or would be too large once it is parsed."""
        if len(raw) > self.bytes_max:
            raise RequestRefused(
                TOO_LARGE, f"a message of this call has at most {self.bytes_max} bytes; got {len(raw)}"
            )
        if len(raw) > self.fields_max:  # a field takes a byte at least
            try:
                _count(raw, 0, len(raw), self.within, self.fields_max)
            except IndexError:
                raise _unreadable() from None


class UnparsedMessage:
    """A message's bytes, and the way to parse them."""

    __slots__ = ("_bound", "_parse", "raw")

    def __init__(self, raw: bytes, parse: Callable[[bytes], Any], bound: MessageBound) -> None:
        self.raw = raw
        self._parse = parse
        self._bound = bound

    def __len__(self) -> int:
        return len(self.raw)

    def parsed(self) -> Any:
        """The message; RequestRefused for one that is too large or invalid."""
        self._bound.check(self.raw)
        try:
            return self._parse(self.raw)
        except DecodeError:
            raise _unreadable() from None


def unparsed(parse: Callable[[bytes], Any], bound: MessageBound) -> Callable[[bytes], UnparsedMessage]:
    """The deserializer for gRPC's library."""
    return lambda raw: UnparsedMessage(raw, parse, bound)


def bounds(config: GrpcConfig) -> dict[str, MessageBound]:
    """The bounds of each call, by its name; every other call has OTHERS."""
    whole = config.message_bytes_max
    leases = max(LIST_BYTES_MAX, PROOF_BYTES * config.items_max)
    results = {2: BoundedField(bytes_min=LONG_ITEM_BYTES)}
    session = {1: BoundedField(), 2: BoundedField(), 4: BoundedField(), 5: BoundedField(results)}
    settled = 8 * config.items_max + FIELDS_MAX
    return {
        "Submit": MessageBound(whole),
        "SubmitMany": MessageBound(whole, config.batch_jobs_max + FIELDS_MAX),
        "Start": MessageBound(LIST_BYTES_MAX, LISTED_MAX),
        "Lease": MessageBound(LIST_BYTES_MAX, LISTED_MAX, {2: BoundedField()}),
        "Heartbeat": MessageBound(leases, config.items_max + FIELDS_MAX, {2: BoundedField()}),
        "Settle": MessageBound(whole, settled, {2: BoundedField(results)}),
        "Outcome": MessageBound(leases, config.items_max + FIELDS_MAX),
        "Figures": MessageBound(leases, 2 * config.items_max + FIELDS_MAX),
        "Session": MessageBound(whole, max(settled, LISTED_MAX), session),
        "Check": MessageBound(PROBE_BYTES_MAX),
        "Watch": MessageBound(PROBE_BYTES_MAX),
    }  # fmt: skip


OTHERS: Final = MessageBound(LARGE_BYTES)


def _count(raw: bytes, at: int, end: int, within: Mapping[int, BoundedField], left: int) -> int:
    """Count fields until the end; answers how many more there may be. IndexError for invalid bytes."""
    while at < end:
        left -= 1
        if left < 0:
            raise RequestRefused(TOO_LARGE, "the message has more fields or items than one of this call may")
        tag = raw[at]
        at += 1
        if tag > 127:
            tag, at = _varint(raw, at - 1)
        kind = tag & 7
        if kind == 2:
            size = raw[at]
            at += 1
            if size > 127:
                size, at = _varint(raw, at - 1)
            inner = within.get(tag >> 3)
            if inner is not None and size >= inner.bytes_min:
                left = _count(raw, at, min(at + size, end), inner.fields, left)
            at += size
        elif kind == 0:
            at = _varint(raw, at)[1]
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4  # 3 and 4 begin and end a group: its fields count like those around it
    return left


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it."""
    value = 0
    for place in range(VARINT_BYTES_MAX):
        byte = raw[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    raise IndexError


def _unreadable() -> RequestRefused:
    return RequestRefused(MALFORMED, "the message is not one of this call: it cannot be read")
