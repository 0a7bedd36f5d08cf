"""Which budget an HTTP request is counted in, and how one too many is refused."""

import re
from typing import Final

from faultline.api.problems import OVERLOADED, TOO_MANY, Refused
from faultline.server.limits import Limits
from faultline.server.turnstile import Budget, Turnstile, Why

CALL: Final = "call"
WAIT: Final = "wait"
STREAM: Final = "stream"

_EVENTS: Final = "/api/v1/events"
_WAIT: Final = re.compile(r"/api/v1/jobs/[0-9]{1,20}/wait")


def turnstile(limits: Limits) -> Turnstile:
    """Calls, long polls and event streams, each with its budget."""
    budgets = {
        CALL: Budget(limits.calls_at_once_max, limits.calls_at_once_per_key),
        WAIT: Budget(limits.waits_max, limits.waits_per_key),
        STREAM: Budget(limits.subscribers_max, limits.subscribers_per_key),
    }
    return Turnstile(budgets, limits.calls_per_second_per_key, _refused)


def kind_of(route: str) -> str:
    """The budget of a request.

    >>> kind_of("/api/v1/jobs/7/wait"), kind_of("/api/v1/events"), kind_of("/api/v1/jobs")
    ('wait', 'stream', 'call')
    """
    if route == _EVENTS:
        return STREAM
    return WAIT if _WAIT.fullmatch(route) else CALL


def _refused(why: Why, detail: str) -> Refused:
    return Refused(OVERLOADED if why == "full" else TOO_MANY, detail, 1)
