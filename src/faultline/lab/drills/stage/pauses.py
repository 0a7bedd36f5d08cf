"""Pauses: places in a worker's own code where one thread of it waits until the drill lets it go on.

A freeze stops the whole worker. A pause stops one attempt, or the event loop, at a fail point; the rest of
the worker runs on. So an attempt outlives its lease inside a healthy worker.
"""

import contextlib
import threading
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import psycopg

from faultline import failpoints
from faultline.lab.drills.stage.barriers import pass_through
from faultline.store.driver.connect import connect
from faultline.telemetry import current, emit

RUNS_NOW: Final = (
    "select from faultline.get_job(%s) as job where job.state = 'running' and job.attempt = %s limit 1"
)


class PausePoint(NamedTuple):
    """Where to wait, before which barrier, and on whose behalf."""

    point: str
    barrier: str
    job: int
    attempt: int = 1


def arm(dsn: str, name: str, pauses: Sequence[PausePoint]) -> None:
    """Have this process wait at each pause, once; `name` is who it says it is."""
    for point in {pause.point for pause in pauses}:
        left = [pause for pause in pauses if pause.point == point]
        failpoints.bring(point, partial(_reached, dsn, name, left, threading.Lock()))


def _reached(dsn: str, name: str, left: list[PausePoint], turn: threading.Lock) -> None:
    if (pause := _due(dsn, left, turn)) is None:
        return
    emit("paused", worker=name, point=pause.point, job_id=pause.job)
    # A server that goes away takes its barriers along: there is no reason to wait any more.
    with contextlib.suppress(psycopg.OperationalError), connect(dsn) as conn:
        pass_through(conn, pause.barrier)
    emit("goes_on", worker=name, point=pause.point, job_id=pause.job)


def _due(dsn: str, left: list[PausePoint], turn: threading.Lock) -> PausePoint | None:
    """The pause meant for the attempt that came here or, outside an attempt, for the claimed job."""
    job = current.get()
    with turn:
        for pause in left:
            if (job.id, job.attempt) == (pause.job, pause.attempt) if job else _runs_now(dsn, pause):
                left.remove(pause)
                return pause
    return None


def _runs_now(dsn: str, pause: PausePoint) -> bool:
    with connect(dsn) as conn:
        return conn.execute(RUNS_NOW, [pause.job, pause.attempt]).fetchone() is not None
