"""Structured events: a name and its facts, as one log record."""

import logging
from typing import Any, Final

EVENTS: Final = (
    "enqueued",
    "lease_acquired",
    "execution_started",
    "heartbeat",
    "lease_expired",
    "stale_write_blocked",
    "execution_finished",
    "worker_exit",
    "process_ended",
)
"""The names that stay; programs may rely on them."""

# A claim id is a capability, so it cannot be spelled in an event, not even by mistake.
_NEVER: Final = frozenset({"claim", "claim_id", "claims", "proof"})

_log: Final = logging.getLogger("faultline.events")


def emit(name: str, level: int = logging.INFO, /, **facts: Any) -> None:
    """Tell listeners that something happened; next to nothing when nobody listens.

    >>> emit("lease_acquired", job_id=7, token=3, worker="a")
    """
    if _log.isEnabledFor(level):
        told = {fact: value for fact, value in facts.items() if fact not in _NEVER}
        _log.log(level, name, extra={"event": name, "facts": told})


def hears(level: int = logging.INFO) -> bool:
    """Whether anybody listens at this level; ask before gathering facts that cost something.

    >>> isinstance(hears(), bool)
    True
    """
    return _log.isEnabledFor(level)
