"""Structured events: a name and its facts, as one log record."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final

EVENTS: Final = (
    "enqueued",
    "lease_acquired",
    "execution_started",
    "heartbeat",
    "lease_expired",
    "stale_write_blocked",
    "execution_finished",
    "worker_start",
    "worker_exit",
    "process_ended",
    "commit_resolved",
    "loop_blocked",
    "clock_stepped",
    "timeline_changed",
)
"""The names that stay; programs may rely on them."""

# A claim id is a capability, so it cannot be spelled in an event, not even by mistake.
_NEVER: Final = frozenset({"claim", "claim_id", "claims", "proof"})

_log: Final = logging.getLogger("faultline.events")

Listener = Callable[[str, dict[str, Any]], None]
"""Takes an event's name and its facts, in whatever thread it happened; what it raises is swallowed."""

_listeners: tuple[Listener, ...] = ()


def emit(name: str, level: int = logging.INFO, /, **facts: Any) -> None:
    """Tell that something happened; next to nothing when nobody listens.

    >>> emit("lease_acquired", job_id=7, token=3, worker="a")
    """
    logged = _log.isEnabledFor(level)
    if logged or _listeners:
        told = {fact: value for fact, value in facts.items() if fact not in _NEVER}
        if logged:
            _log.log(level, name, extra={"event": name, "facts": told})
        _hand_on(name, told)


def tell(name: str, /, **facts: Any) -> None:
    """Tell listeners alone what is too much for a log: figures, gathered for many jobs at once.

    >>> tell("jobs_settled", counts={("default", "charge", "succeeded"): 20}, took={})
    """
    if _listeners:
        _hand_on(name, facts)


def counted() -> bool:
    """Whether anybody listens for figures; ask before gathering them.

    >>> isinstance(counted(), bool)
    True
    """
    return bool(_listeners)


def listen(listener: Listener) -> Callable[[], None]:
    """Hear each event as it happens, whatever the log is set to; returns how to stop.

    What happens once a job (`lease_acquired`, `execution_started`, `heartbeat`) is told only while the log
    is at DEBUG. For figures there are batches, told to listeners alone: `jobs_claimed`, `jobs_settled`,
    `worker_state`, `round_made`.

    >>> heard = []
    >>> stop = listen(lambda name, facts: heard.append((name, facts["reason"])))
    >>> emit("stale_write_blocked", reason="token_mismatch")
    >>> heard
    [('stale_write_blocked', 'token_mismatch')]
    >>> stop()
    """
    global _listeners
    _listeners = (*_listeners, listener)

    def stop() -> None:
        global _listeners
        _listeners = tuple(known for known in _listeners if known is not listener)

    return stop


def _hand_on(name: str, facts: dict[str, Any]) -> None:
    for listener in _listeners:
        try:
            listener(name, facts)
        except Exception:  # whoever counts the work must not be able to stop it
            logging.getLogger("faultline.telemetry").debug("a listener failed on %s", name, exc_info=True)


def hears(level: int = logging.INFO) -> bool:
    """Whether anybody listens at this level; ask before gathering facts that cost something.

    >>> isinstance(hears(), bool)
    True
    """
    return _log.isEnabledFor(level)


class Budget:
    """So many a second, and no more: for what would drown a log when everything fails at once.

    >>> budget = Budget(2)
    >>> [budget.may(at) for at in (7.0, 7.1, 7.2, 8.1)]
    [True, True, False, True]
    """

    def __init__(self, a_second: int) -> None:
        self._a_second = a_second
        self._second = -1.0
        self._spent = 0

    def may(self, now: float | None = None) -> bool:
        """Whether one more may be told."""
        second = (time.monotonic() if now is None else now) // 1
        if second != self._second:
            self._second, self._spent = second, 0
        self._spent += 1
        return self._spent <= self._a_second
