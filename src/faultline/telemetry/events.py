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
    "job_expired",
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
"""The stable names; programs may rely on them."""

# A claim id is a capability, so no event may carry it, not even by mistake.
_NEVER: Final = frozenset({"claim", "claim_id", "claims", "proof"})

_log: Final = logging.getLogger("faultline.events")

Listener = Callable[[str, dict[str, Any]], None]
"""Takes an event's name and its facts, in the thread of the event; its exceptions are swallowed."""

_listeners: tuple[Listener, ...] = ()


def emit(name: str, level: int = logging.INFO, /, **facts: Any) -> None:
    """Emit an event; the cost without a listener is close to zero.

    >>> emit("lease_acquired", job_id=7, token=3, worker="a")
    """
    logged = _log.isEnabledFor(level)
    if logged or _listeners:
        told = {fact: value for fact, value in facts.items() if fact not in _NEVER}
        if logged:
            _log.log(level, name, extra={"event": name, "facts": told})
        _hand_on(name, told)


def record_metric(name: str, /, **facts: Any) -> None:
    """Tell listeners alone the figures of many jobs at once, which are too much for a log.

    >>> record_metric("jobs_settled", counts={("default", "charge", "succeeded"): 20}, took={})
    """
    if _listeners:
        _hand_on(name, facts)


def has_listeners() -> bool:
    """Whether there is a listener for figures; ask before gathering them.

    >>> isinstance(has_listeners(), bool)
    True
    """
    return bool(_listeners)


def listen(listener: Listener) -> Callable[[], None]:
    """Call `heard` for each event, at any level of the log; returns how to stop.

    Events of each job (`lease_acquired`, `execution_started`, `heartbeat`) are emitted only while the log
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
        except Exception:  # a listener's failure must not stop the work
            logging.getLogger("faultline.telemetry").debug("a listener failed on %s", name, exc_info=True)


def is_logging(level: int = logging.INFO) -> bool:
    """Whether there is a listener at this level; ask before gathering facts that cost something.

    >>> isinstance(is_logging(), bool)
    True
    """
    return _log.isEnabledFor(level)


class LogBudget:
    """A bound on events a second: for those that would flood a log when everything fails at once.

    >>> budget = LogBudget(2)
    >>> [budget.may(at) for at in (7.0, 7.1, 7.2, 8.1)]
    [True, True, False, True]
    """

    def __init__(self, a_second: int) -> None:
        self._a_second = a_second
        self._second = -1.0
        self._spent = 0

    def may(self, now: float | None = None) -> bool:
        """Whether one more may be emitted."""
        second = (time.monotonic() if now is None else now) // 1
        if second != self._second:
            self._second, self._spent = second, 0
        self._spent += 1
        return self._spent <= self._a_second
