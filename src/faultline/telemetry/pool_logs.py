"""The rate of log lines of our driver pools: without it, each failed connect is a line, several a second."""

import logging
from typing import Final

from faultline.telemetry.rate_limited import RateLimited

POOL_NAME: Final = "faultline"
POOLS: Final = "psycopg.pool"
"""The logger of every pool of the driver, with those of an application."""

SAID_EVERY: Final = 5.0


def is_of_our_pool(record: logging.LogRecord) -> bool:
    """Whether a record of the driver's logger is about a pool of ours, named by itself or by a connection."""
    first = record.args[0] if isinstance(record.args, tuple) and record.args else None
    return first == POOL_NAME or type(first).__module__.startswith("faultline.")


class _Seldom(logging.Filter):
    """Passes each kind of line about our pools once in five seconds; an application's own lines all pass."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = RateLimited(SAID_EVERY)

    def filter(self, record: logging.LogRecord) -> bool:
        if not is_of_our_pool(record):
            return True
        # The failures of one second have the same text as the first of them.
        return not record.msg.startswith("reconnection attempt") and self._seldom.allows(record.msg)


_seldom: Final = _Seldom()


def pool_name() -> str:
    """The name for a pool of ours; lines with this name are limited from here on."""
    logging.getLogger(POOLS).addFilter(_seldom)
    return POOL_NAME
