"""What an attempt that did not simply return amounts to: exceptions in, outcomes out. Pure."""

from datetime import datetime, timedelta

from faultline.errors import ConfigError, HandlerDied, LeaseLost, NoDatabase
from faultline.job import LedgerEntry
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Outcome, Released, Snooze
from faultline.retry import Again, Bury, Ignore, Retry, decide, from_json
from faultline.store.line import OUTAGE
from faultline.task import MAX_CRASHES
from faultline.telemetry import describe_error, shortened
from faultline.worker.hand import Hand
from faultline.worker.trouble import is_of_all

UNKNOWN_TASK_PAUSE = timedelta(seconds=15)
UNKNOWN_TASK_FOR = timedelta(days=1)
UNKNOWN_TASK = "no task of this name is known to this worker; left for one that knows it: "
NO_DATABASE = "this worker has no DSN, which job.transaction() needs; left for one that has: "
UNFIT_PAUSE = timedelta(seconds=30)
"""How long a job waits that this worker cannot run though it knows its task."""
STILL_RUNNING_PAUSE = timedelta(seconds=1)
AWAY_PAUSE = timedelta(seconds=1)
REASON_BYTES_MAX = 4096
"""What is kept of why a job died; the middle of a longer text is left out."""
REFUSED_PAUSE = timedelta(seconds=10)
"""The same where somebody has to mend something first: rights, or a schema."""


def after_raise(hand: Hand, error: BaseException) -> Outcome | LeaseLost:
    """A handler raised: a word of its own, a lost lease, an outage, or an error for its retry rules."""
    if isinstance(error, Snooze | Cancel | Dead):
        return error
    if isinstance(error, LeaseLost) and (error.job_id, error.token) == (hand.job.id, hand.job.token):
        return after_refusal(error)
    if isinstance(error, NoDatabase):
        # This worker lacks what the handler needs, which others may have: no fault of the job either.
        return Snooze(UNFIT_PAUSE, NO_DATABASE + hand.job.task)
    if hand.unknown:
        # If it was committed, or a failover lost its claim, the fence refuses this; else it is tried again.
        return Snooze(AWAY_PAUSE, f"the reply to its commit was lost: {error}")
    if isinstance(error, OUTAGE):
        # The database was away, which is no fault of the job: its attempt is given back.
        pause = REFUSED_PAUSE if error.__cause__ is not None and is_of_all(error.__cause__) else AWAY_PAUSE
        return Snooze(pause, f"the database went away during the attempt: {error}")
    return outcome_of(hand, error)


def outcome_of(hand: Hand, error: BaseException) -> Outcome:
    """What the retry rules make of an error."""
    match decide(_rules(hand), hand.job.attempt, error):
        case Again(delay, note):
            said = f"{describe_error(error)}\n{note}".rstrip()
            return _crashed(hand, error, said, delay) or Failed(said, delay)
        case Bury(reason):
            said = describe_error(error)
            return Dead(shortened(f"{reason}: {said}" if reason else said, REASON_BYTES_MAX))
        case Ignore():
            return Done(None)


def _crashed(hand: Hand, error: BaseException, said: str, delay: timedelta) -> Crashed | None:
    """A crash, where it is one: a process that ended, or its memory did, perhaps of a neighbour's doing."""
    most = hand.spec.max_crashes if hand.spec else MAX_CRASHES
    match error:
        case HandlerDied():
            return Crashed(said, error.signature, delay, error.alone, most)
        case MemoryError():
            return Crashed(said, "out of memory", delay, False, most)
        case _:
            return None


def _rules(hand: Hand) -> Retry:
    """The task's rules, over the policy stored with the job where there is one."""
    rules = hand.spec.retry if hand.spec else Retry()
    if hand.retry is None:
        return rules
    try:
        return rules.with_policy(from_json(hand.retry))
    except ConfigError:
        return rules  # a policy that cannot be read must not cost the job its retry


def after_refusal(lost: LeaseLost) -> Outcome | LeaseLost:
    """job.transaction was refused: by the fence, to be recorded, or by our own deadline before it."""
    return Released("its lease could not be renewed in time") if lost.reason == "not_renewed" else lost


def after_stop(hand: Hand) -> Outcome | None:
    """The worker itself stopped the handler: what is there to say?"""
    match hand.stopping:
        case "timeout":
            return outcome_of(
                hand, TimeoutError(f"{hand.job.task} ran into its timeout and was told to stop")
            )
        case "lost" | "cancel":
            return None  # it is no longer ours: there is nothing to say, and nobody to hear it
        case "still_running":
            return Snooze(STILL_RUNNING_PAUSE, "an earlier attempt still runs in this worker")
        case "not_renewed":
            return Released("its lease could not be renewed in time")
        case _:
            return Released("the worker is stopping")


def unknown_task(hand: Hand) -> Outcome:
    """No handler here: left for another worker, looked at again in a while, and after a day given up."""
    return Snooze(UNKNOWN_TASK_PAUSE, UNKNOWN_TASK + hand.job.task)


def unknown_for_long(history: list[LedgerEntry], now: datetime) -> bool:
    """Whether for a day, up to now, every lease ended because nobody knew the task.

    All times are the database's.
    """
    since = now
    for entry in reversed(history):
        if entry.outcome != "snoozed" or not (entry.error or "").startswith(UNKNOWN_TASK):
            break
        since = entry.settled_at
    return now - since > UNKNOWN_TASK_FOR
