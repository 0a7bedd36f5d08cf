"""How a handler ended, as an outcome: the same in the loop, in a thread and in a child process."""

import logging
from typing import Any

from faultline.args import encode_result
from faultline.errors import AlreadySettled, FaultlineError, LeaseLost, TransactionOpen
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Outcome, Snooze
from faultline.telemetry import describe_error
from faultline.worker.hand import Hand
from faultline.worker.judge import after_raise, after_refusal

log = logging.getLogger("faultline.worker")

NOTHING = Done(None)
WORDS = (Snooze, Cancel, Dead)


def returned(hand: Hand, value: Any) -> Outcome | LeaseLost | None:
    """What a handler returned, as an outcome; encoded here, so that a bad result fails its own job."""
    if hand.settled:
        if value is not None:
            log.error("%s", _already(hand, value))
        return None
    if hand.lost is not None:
        return after_refusal(hand.lost)
    if hand.in_block:
        # Its rows are not committed yet: a success recorded now would be one without them.
        raise TransactionOpen("the handler returned while its job.transaction() was still open; await it")
    if value is None:
        return NOTHING
    return value if isinstance(value, WORDS) else Done(encode_result(value, hand.job.task))


def raised(hand: Hand, error: BaseException) -> Outcome | LeaseLost | None:
    """What a handler raised, as an outcome."""
    if hand.settled:
        log.error(
            "job %d (%s) raised after job.transaction() had settled it; its success stands: %s",
            hand.job.id, hand.job.task, describe_error(error),
        )  # fmt: skip
        return None
    if hand.lost is not None:
        return after_refusal(hand.lost)
    try:
        return after_raise(hand, error)
    except Exception as mishap:  # a policy or an exception of the user's own making
        return Failed(f"{type(error).__name__}; and it could not be judged: {type(mishap).__name__}")


def described(hand: Hand, outcome: Outcome | LeaseLost | None) -> tuple[str, str | None]:
    """How an attempt ended, in a word, and the kind of its error: not its text, which may hold anything."""
    if hand.settled:
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


def _already(hand: Hand, value: Any) -> FaultlineError:
    job = hand.job
    if isinstance(value, WORDS):
        return AlreadySettled(
            f"job {job.id} ({job.task}) said {type(value).__name__} after job.transaction() had settled it; "
            "its success stands: say it before the block, or raise it inside the block, which rolls it back"
        )
    return AlreadySettled(
        f"job {job.id} ({job.task}) returned a value after job.transaction() had settled it; the "
        "committed result stays: pass it as job.transaction(result=...) and return nothing"
    )
