"""What became of a job that its handler settled in a transaction of its own: the rows are asked.

Settling without asking would be refused where the handler has committed, and would record a refusal that
never was; where it has not, a success without its rows.
"""

import logging
from typing import Final

from faultline.errors import AlreadySettled, NotCommitted, TransactionOpen
from faultline.outcome import HANDLER_OUTCOMES, Done, Failed, Outcome
from faultline.worker.attempt import COMMITTED, Attempt, Offer
from faultline.worker.call_errors import NO_ROW_TELLS
from faultline.worker.execution.outcomes import outcome_of

log = logging.getLogger("faultline.worker")

NO_RESULT: Final = (None, "null")


def judged(attempt: Attempt, offer: Offer, entry: str, outcome: Outcome) -> Outcome | None:
    """What is still to be recorded, by the rows' word; None where all is recorded, or cannot be."""
    job = attempt.job
    match entry:
        case offer.entry if entry == "succeeded":
            attempt.phase, attempt.committed_result = COMMITTED, offer.result
            _look_behind(attempt, offer, outcome)
            return None
        case offer.entry:
            attempt.ended_as = entry
            return None
        case "dead" if offer.entry == "failed":  # it was the last attempt
            attempt.ended_as = entry
            return None
        case "running" if isinstance(outcome, Done):
            return outcome_of(
                attempt,
                NotCommitted(
                    f"the handler returned after job.{_form(offer)}(), and its transaction was not "
                    "committed: the rows that it wrote there are gone. Commit before you return"
                ),
            )
        case "running":
            return outcome
        case "busy":
            attempt.ended_as = "unsettled"
            log.error(
                "%s", TransactionOpen(
                    f"job {job.id} ({job.task}): its handler ended and left the transaction of "
                    f"job.{_form(offer)}() open, so nothing can be recorded; its commit still counts, and "
                    "when it rolls back the lease runs out. Commit or close it before the handler returns"
                ),
            )  # fmt: skip
            return None
        case _:
            attempt.ended_as = "unknown" if entry == "gone" else entry
            log.error("job %d (%s): after job.%s() %s", job.id, job.task, _form(offer),
                      NO_ROW_TELLS if entry == "gone" else f"its lease had ended as {entry}")  # fmt: skip
            return None


def _look_behind(attempt: Attempt, offer: Offer, outcome: Outcome) -> None:
    """Tell what the handler said after its success was committed, where that is something else."""
    job = attempt.job
    if isinstance(outcome, Done):
        if outcome.result not in NO_RESULT and outcome.result != offer.result:
            log.error("%s", AlreadySettled(
                f"job {job.id} ({job.task}) returned a value after job.complete_in() had settled it; the "
                "committed result stays: pass it as job.complete_in(conn, result=...) and return nothing"
            ))  # fmt: skip
    elif isinstance(outcome, Failed):
        attempt.afterword = outcome.error
    elif isinstance(outcome, HANDLER_OUTCOMES):
        log.error("%s", AlreadySettled(
            f"job {job.id} ({job.task}) said {type(outcome).__name__} after job.complete_in() had settled "
            "it; its success stands"
        ))  # fmt: skip


def _form(offer: Offer) -> str:
    return {"succeeded": "complete_in", "failed": "fail_in", "snoozed": "snooze_in"}[offer.entry]
