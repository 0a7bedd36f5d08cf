"""Wait for something that only the database can tell: asked again and again, within a bound."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg

from faultline.lab.drills.view.trace import DrillStuck

LOOK_EVERY_SECONDS: Final = 0.01
WITHIN_SECONDS: Final = 60.0

_never = threading.Event()


def wait_until(
    conn: psycopg.Connection[Any],
    question: str,
    about: Sequence[Any],
    what: str,
    unless: Callable[[], bool] = lambda: False,
) -> bool:
    """True when the question is answered with a row; DrillStuck when it is not in time.

    False when `unless` came true first: then it will never happen.
    """
    give_up_at = time.monotonic() + WITHIN_SECONDS
    while conn.execute(question.encode(), about).fetchone() is None:
        if unless():
            return False
        if time.monotonic() > give_up_at:
            raise DrillStuck(f"waited {WITHIN_SECONDS:.0f} s for this, and it did not happen: {what}")
        _never.wait(LOOK_EVERY_SECONDS)
    return True
