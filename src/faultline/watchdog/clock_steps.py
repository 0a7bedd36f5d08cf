"""Reports steps of the database's clock, and changes of its server; the repair is done in SQL."""

import logging
import time
from typing import NamedTuple

from faultline.store.rows import Round
from faultline.telemetry import emit

STEP_MIN = 2.0
"""Seconds of difference from which a clock counts as set: a smaller step harms no allowed lease."""


def steady() -> float:
    """Seconds of a clock that cannot be set, and that runs on in a suspended machine, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Look(NamedTuple):
    """The database's clock, at some moment between two of ours."""

    moment: float
    asked_at: float
    told_at: float


class Steps:
    """Compares the database's clock with ours, from round to round.

    Each change is reported by one watchdog, the one that makes the first round after it.
    """

    def __init__(self) -> None:
        self._last: Look | None = None

    def look(self, made: Round, asked_at: float, told_at: float) -> None:
        """Take in the clock of a round; it was read between the begin and the end of its call."""
        before, self._last = self._last, Look(made.moment.timestamp(), asked_at, told_at)
        if not made.mine:
            return
        if made.stepped is not None:
            emit("clock_stepped", logging.WARNING, seconds=round(made.stepped.total_seconds(), 1))
        elif before is not None and (ahead := _ahead(before, self._last, made)) >= STEP_MIN:
            emit("clock_stepped", logging.WARNING, seconds=round(ahead, 1))
        if made.era_before is not None and made.era_before != made.era:
            emit("timeline_changed", logging.WARNING, before=made.era_before, now=made.era)


def _ahead(before: Look, now: Look, made: Round) -> float:
    """Seconds by which the database's clock has gone further than ours, at least.

    0 where others made rounds while it went ahead of ours: then our process was suspended, unnoticed.
    """
    most = now.told_at - before.asked_at
    if made.last_at is not None and made.last_at.timestamp() - before.moment > most + STEP_MIN:
        return 0.0
    return now.moment - before.moment - most
