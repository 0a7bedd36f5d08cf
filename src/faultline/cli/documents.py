"""Jobs, leases and refusals as JSON documents: ids as numbers, tokens as strings."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from faultline.job import JobInfo, LedgerEntry, Refusal

# JavaScript keeps integers up to 2^53. A token grows past that with the server's timeline; an id never will.
_TOKENS = frozenset({"token", "current_token"})


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts as JSON: moments in ISO 8601, tokens as strings."""
    return {name: _value(name, value) for name, value in facts.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if name in _TOKENS and value is not None else value


def job_document(job: JobInfo) -> dict[str, Any]:
    return plain(asdict(job))


def entry_document(entry: LedgerEntry) -> dict[str, Any]:
    return plain(asdict(entry))


def refusal_document(refusal: Refusal) -> dict[str, Any]:
    return plain(asdict(refusal))
