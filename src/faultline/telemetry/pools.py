"""How often the driver's pools of ours speak: they would tell each try to connect, several a second."""

import logging
from typing import Final

from faultline.telemetry.seldom import Seldom

POOL_NAME: Final = "faultline"
POOLS: Final = "psycopg.pool"
"""The logger of every pool of the driver, those of an application among them."""

SAID_EVERY: Final = 5.0


def is_of_our_pool(record: logging.LogRecord) -> bool:
    """Whether a record of the driver's logger is about a pool of ours, named by itself or by a connection."""
    first = record.args[0] if isinstance(record.args, tuple) and record.args else None
    return first == POOL_NAME or type(first).__module__.startswith("faultline.")


class _Seldom(logging.Filter):
    """Lets each kind of line about pools of ours pass once in five seconds; an application's own all pass."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = Seldom(SAID_EVERY)

    def filter(self, record: logging.LogRecord) -> bool:
        if not is_of_our_pool(record):
            return True
        # That all tries of a second failed says no more than what the first of them said.
        return not record.msg.startswith("reconnection attempt") and self._seldom.allows(record.msg)


_seldom: Final = _Seldom()


def pool_name() -> str:
    """The name for a pool of ours; from here on lines that name it are seldom."""
    logging.getLogger(POOLS).addFilter(_seldom)
    return POOL_NAME
