"""Arrays in PostgreSQL's binary form, packed in one step: the driver would examine each element."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

_EMPTY: Final = struct.Struct("!iiI")  # dimensions, whether it has nulls, type of the elements
_HEAD: Final = struct.Struct("!iiIii")  # the same, how many elements, number of the first
_LENGTH: Final = struct.Struct("!i")
_NULL: Final = _LENGTH.pack(-1)
_BIGINT_BYTES: Final = 8
_UUID_LENGTH: Final = _LENGTH.pack(16)
_INTERVAL: Final = struct.Struct("!iqii")  # length, microseconds, days, months
_INTERVAL_BYTES: Final = 16


class ArrayParam(NamedTuple):
    """An array argument and its type."""

    values: Sequence[Any]
    of: str


def pack(many: ArrayParam, encoding: str = "utf-8") -> bytes:
    """The array in the server's binary form.

    >>> pack(ArrayParam([7], "bigint")).hex(" ", 4)
    '00000001 00000000 00000014 00000001 00000001 00000008 00000000 00000007'
    """
    oid, pack_values = _TYPES[many.of]
    if not many.values:
        return _EMPTY.pack(0, 0, oid)
    body = pack_values(many.values, encoding)
    # Only texts may be null: no other null can be packed, and a search for one takes long.
    has_nulls = many.of == "text" and None in many.values
    return _HEAD.pack(1, has_nulls, oid, len(many.values), 1) + body


def _bigints(values: Sequence[Any], encoding: str) -> bytes:
    spread = [_BIGINT_BYTES] * (2 * len(values))
    spread[1::2] = values
    return struct.pack("!" + "iq" * len(values), *spread)


def _uuids(values: Sequence[Any], encoding: str) -> bytes:
    # A batch names one claim hundreds of times: a run of equal values is packed once.
    parts: list[bytes] = []
    last: UUID | None = None
    for value in values:
        if value is not last:
            last, part = value, _UUID_LENGTH + value.bytes
        parts.append(part)
    return b"".join(parts)


def _intervals(values: Sequence[Any], encoding: str) -> bytes:
    return b"".join(
        _INTERVAL.pack(_INTERVAL_BYTES, value.seconds * 1_000_000 + value.microseconds, value.days, 0)
        for value in values
    )


def _texts(values: Sequence[Any], encoding: str) -> bytes:
    parts: list[bytes] = []
    length = _LENGTH.pack
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            data = value.encode(encoding)
            if b"\0" in data:
                raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
            parts += (length(len(data)), data)
    return b"".join(parts)


_TYPES: Final[dict[str, tuple[int, Callable[[Sequence[Any], str], bytes]]]] = {
    "bigint": (20, _bigints),
    "uuid": (2950, _uuids),
    "text": (25, _texts),
    "interval": (1186, _intervals),
}


class ArrayParamDumper(Dumper):
    """Lets psycopg send an ArrayParam. It names no type: the cast in the call gives it."""

    format = Format.BINARY

    def dump(self, obj: ArrayParam) -> bytes:
        return pack(obj, self.connection.info.encoding if self.connection else "utf-8")


def register_types(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    """Let a connection send an ArrayParam, even if it was made before this module was imported."""
    conn.adapters.register_dumper(ArrayParam, ArrayParamDumper)


psycopg.adapters.register_dumper(ArrayParam, ArrayParamDumper)
