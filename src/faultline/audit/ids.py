"""Ids that a producer kept: one a line, or JSON lines with `id` and optionally `at`."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from faultline.errors import InputError

IDS_MAX: Final = 10_000_000
"""The bound on the ids of one audit: about a gigabyte of memory."""

ID_MAX: Final = 2**63 - 1
LINE_BYTES_MAX: Final = 10_000
WANTED: Final = 'a line is a job id, or JSON such as {"id": 7, "at": "2030-01-31T09:00:00Z"}'

Acknowledged = dict[int, datetime | None]
"""The ids in the answers of enqueues, and their times, where the producer kept them."""


def read_ids(lines: Iterable[str], name: str) -> Acknowledged:
    """Every id of a file, with the first time noted for it; an invalid line is named."""
    ids: Acknowledged = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            job_id, moment = _read(line.strip())
        except (ValueError, OverflowError, OSError, RecursionError) as error:
            raise InputError(f"{name}, line {number}: {line.strip()[:60]!a}: {error}; {WANTED}") from None
        if len(ids) >= IDS_MAX and job_id not in ids:
            raise InputError(f"{name} has more than {IDS_MAX:,} ids; give them in parts")
        ids.setdefault(job_id, moment)
    if not ids:
        raise InputError(f"{name} has no ids; {WANTED}")
    return ids


def _read(line: str) -> tuple[int, datetime | None]:
    if len(line) > LINE_BYTES_MAX:
        raise ValueError(f"it is longer than {LINE_BYTES_MAX:,} characters")
    if not line.startswith("{"):
        return _id(int(line) if line.isascii() and line.isdecimal() and len(line) < 20 else line), None
    document = json.loads(line)
    if "id" not in document:
        raise ValueError("it has no id")
    return _id(document["id"]), _moment(document.get("at"))


def _id(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= ID_MAX:
        raise ValueError("it is no job id")
    return value


def _moment(value: Any) -> datetime | None:
    """Seconds since 1970, or a written time with its zone; without a zone it may be another hour."""
    match value:
        case None:
            return None
        case int() | float() if not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        case str() if (moment := datetime.fromisoformat(value)).tzinfo is not None:
            return moment
        case _:
            raise ValueError("its `at` is no moment with a time zone")
