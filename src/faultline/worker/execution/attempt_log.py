"""Tells the log, and listeners for events, how attempts began and ended."""

import logging
from typing import Any, Final

from faultline.errors import LeaseLost
from faultline.outcome import Crashed, Dead, Failed, Outcome, Unserved
from faultline.telemetry import emit
from faultline.telemetry.events import LogBudget, has_listeners, is_logging, record_metric
from faultline.worker.attempt import COMMITTED, Attempt

log = logging.getLogger("faultline.worker")

FRAMES_A_SECOND: Final = 20
"""Failures told with their frames; past these a line each, since all of them stand in the ledger anyway."""


class AttemptLog:
    """A line for each attempt at DEBUG; a failure is a warning, the one that the job dies of an error."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._frames_told = LogBudget(FRAMES_A_SECOND)

    def started(self, attempt: Attempt) -> None:
        emit("execution_started", logging.DEBUG, **self._facts(attempt))

    def finished(self, attempt: Attempt, outcome: Outcome | LeaseLost | None) -> None:
        """A handler has ended.

        Of a crash the database decides whether the job dies: `recorded` tells it, once it is recorded.
        """
        committed = attempt.phase is COMMITTED
        facts = self._facts(attempt) | {"outcome": "Settled" if committed else type(outcome).__name__}
        if isinstance(outcome, Crashed) and not committed:
            return
        if isinstance(outcome, Failed | Dead) and not committed:
            self._failed(attempt, outcome, facts)
        elif is_logging(logging.DEBUG):
            emit("execution_finished", logging.DEBUG, **facts)

    def _failed(self, attempt: Attempt, outcome: Failed | Dead, facts: dict[str, Any]) -> None:
        dies = isinstance(outcome, Dead) or attempt.job.attempt >= attempt.job.max_attempts
        level = logging.ERROR if dies else logging.WARNING
        if not is_logging(level) and not has_listeners():
            return
        facts["max_attempts"] = attempt.job.max_attempts
        facts["state"] = "dead" if dies else "queued"
        error = str(outcome.reason if isinstance(outcome, Dead) else outcome.error)
        facts["error"], _, frames = error.partition("\n")
        if frames and self._frames_told.may():
            facts["frames"] = frames
        emit("execution_finished", level, **facts)

    def recorded(self, attempt: Attempt, outcome: Outcome) -> None:
        """An outcome is recorded; whether the job died of a crash stood in the answer."""
        if isinstance(outcome, Unserved) and attempt.ended_as == "dead":
            log.error(
                "job %d is dead: no worker knew the task %s for a day", attempt.job.id, attempt.job.task
            )
        if not isinstance(outcome, Crashed):
            return
        job, dead = attempt.job, attempt.ended_as == "dead"
        record_metric("job_crashed", queue=job.queue, task=job.task, signature=outcome.signature)
        error, _, frames = outcome.error.partition("\n")
        if dead and job.attempt < job.max_attempts:
            times, last = outcome.max_crashes, outcome.signature
            error = f"out of crashes: crashed alone {times} times, at last by {last}: {error}"
        emit(
            "execution_finished", logging.ERROR if dead else logging.WARNING, **self._facts(attempt),
            outcome="Crashed", max_attempts=job.max_attempts, state="dead" if dead else "queued", error=error,
            **({"frames": frames} if frames else {}),
        )  # fmt: skip

    def _facts(self, attempt: Attempt) -> dict[str, Any]:
        job = attempt.job
        return {
            "job_id": job.id, "token": job.token, "worker": self._worker, "task": job.task,
            "attempt": job.attempt,
        }  # fmt: skip


def described(attempt: Attempt, outcome: Outcome | LeaseLost | None) -> tuple[str, str | None]:
    """How an attempt ended, in a word, and the kind of its error: not its text, which may hold anything."""
    if attempt.phase is COMMITTED:
        return "committed", None
    match outcome:
        case None:
            return "lost", None
        case Failed(error) | Crashed(error):
            kind = error.partition("\n")[0].partition(":")[0]
            return type(outcome).__name__.lower(), kind if kind.isidentifier() else "Exception"
        case LeaseLost():
            return "refused", "LeaseLost"
        case Dead():
            return "dead", "Dead"
        case _:
            return type(outcome).__name__.lower(), None
