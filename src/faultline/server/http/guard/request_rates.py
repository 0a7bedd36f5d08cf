"""The budget of an HTTP request."""

import re
from typing import Final

from faultline.server.limits import Limits
from faultline.server.throttling.rate_limit import RateBudget, RateLimiter

CALL: Final = "call"
WAIT: Final = "wait"
STREAM: Final = "stream"

_EVENTS: Final = "/api/v1/events"
_WAIT: Final = re.compile(r"/api/v1/jobs/[0-9]{1,20}/wait")


def rate_limiter(limits: Limits) -> RateLimiter:
    """Calls, long polls and event streams, each with its budget."""
    budgets = {
        CALL: RateBudget(limits.calls_at_once_max, limits.calls_at_once_per_key),
        WAIT: RateBudget(limits.waits_max, limits.waits_per_key),
        STREAM: RateBudget(limits.subscribers_max, limits.subscribers_per_key),
    }
    return RateLimiter(budgets, limits.calls_per_second_per_key)


def budget_of(route: str) -> str:
    """The budget of a request.

    >>> budget_of("/api/v1/jobs/7/wait"), budget_of("/api/v1/events"), budget_of("/api/v1/jobs")
    ('wait', 'stream', 'call')
    """
    if route == _EVENTS:
        return STREAM
    return WAIT if _WAIT.fullmatch(route) else CALL
