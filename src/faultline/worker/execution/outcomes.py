"""How a handler ended, as an outcome: the same in the loop, in a thread and in a child process."""

import logging
from datetime import timedelta
from typing import Any, Final, assert_never

from faultline.args import encode_result
from faultline.errors import (
    AlreadySettled,
    BadDocument,
    ConfigError,
    FaultlineError,
    HandlerDied,
    LeaseLost,
    NoDatabase,
    TransactionOpen,
)
from faultline.outcome import HANDLER_OUTCOMES, Crashed, Dead, Done, Failed, Outcome, Released, Snooze
from faultline.retry import Again, Bury, Ignore, Retry, decide, from_json
from faultline.store.session import OUTAGE
from faultline.task import MAX_CRASHES
from faultline.telemetry import describe_error, shortened
from faultline.worker.attempt import BLOCK_OPEN, COMMITTED, WORKING, Attempt, AttemptPhase, StopReason
from faultline.worker.call_errors import is_of_all

log = logging.getLogger("faultline.worker")

NOTHING: Final = Done(None)

NO_DATABASE = "this worker has no DSN, which job.complete() needs; left for one that has: "
UNFIT_PAUSE = timedelta(seconds=30)
"""How long a job waits that this worker cannot run though it knows its task."""
STILL_RUNNING_PAUSE = timedelta(seconds=1)
STILL_RUNNING_PAUSE_MAX = timedelta(seconds=30)
"""As long as the earlier attempt has gone on after it was told to stop, within these bounds."""
AWAY_PAUSE = timedelta(seconds=1)
NOT_RENEWED = "its lease could not be renewed in time"
STOPPING = "the worker is stopping"
HELD_UP = "its worker was held up, and too little of its time was left"
REASON_BYTES_MAX = 4096
"""What is kept of why a job died; the middle of a longer text is left out."""
REFUSED_PAUSE = timedelta(seconds=10)
"""The same where an operator has to mend something first: rights, or a schema."""


def returned(attempt: Attempt, value: Any) -> Outcome | LeaseLost | None:
    """What a handler returned, as an outcome; encoded here, so that a bad result fails its own job."""
    if attempt.phase is COMMITTED:
        if value is not None and not _is_committed(attempt, value):
            log.error("%s", _already(attempt, value))
        return None
    if attempt.lost is not None:
        return after_refusal(attempt.lost)
    if attempt.phase is not WORKING and attempt.phase in BLOCK_OPEN:
        # Its rows are not committed yet: a success recorded now would be one without them.
        raise TransactionOpen("the handler returned while its job.complete() was still open; await it")
    if (
        attempt.unawaited is not None
    ):  # not a failure: the rows may be committed, and a retry would double them
        log.error("%s", _unawaited(attempt, attempt.unawaited))
    if value is None:
        return NOTHING
    return value if isinstance(value, HANDLER_OUTCOMES) else Done(encode_result(value, attempt.job.task))


def raised(attempt: Attempt, error: BaseException) -> Outcome | LeaseLost | None:
    """What a handler raised, as an outcome."""
    if attempt.phase is COMMITTED:
        attempt.afterword = describe_error(error)
        return None
    if attempt.lost is not None:
        return after_refusal(attempt.lost)
    try:
        return after_raise(attempt, error)
    except Exception as mishap:  # a policy or an exception of the user's own making
        return Failed(f"{type(error).__name__}; and it could not be judged: {type(mishap).__name__}")


def after_raise(attempt: Attempt, error: BaseException) -> Outcome | LeaseLost:
    """A handler raised: a word of its own, a lost lease, an outage, or an error for its retry rules."""
    if isinstance(error, HANDLER_OUTCOMES):
        return error
    if isinstance(error, LeaseLost) and (error.job_id, error.token) == (attempt.job.id, attempt.job.token):
        return after_refusal(error)
    if isinstance(error, NoDatabase):
        # This worker lacks what the handler needs, which others may have: no fault of the job either.
        return Snooze(UNFIT_PAUSE, NO_DATABASE + attempt.job.task)
    if attempt.phase is AttemptPhase.UNKNOWN:
        # If it was committed, or a failover lost its claim, the fence refuses this; else it is tried again.
        return Snooze(AWAY_PAUSE, f"the reply to its commit was lost: {error}")
    if isinstance(error, OUTAGE):
        # The database was away, which is no fault of the job: its attempt is given back.
        pause = REFUSED_PAUSE if error.__cause__ is not None and is_of_all(error.__cause__) else AWAY_PAUSE
        return Snooze(pause, f"the database went away during the attempt: {error}")
    return outcome_of(attempt, error)


def outcome_of(attempt: Attempt, error: BaseException) -> Outcome:
    """What the retry rules make of an error."""
    match decide(_rules(attempt), attempt.job.attempt, error):
        case Again(delay, note):
            said = f"{describe_error(error)}\n{note}".rstrip()
            return _crashed(attempt, error, said, delay) or Failed(said, delay)
        case Bury(reason):
            said = describe_error(error)
            return Dead(shortened(f"{reason}: {said}" if reason else said, REASON_BYTES_MAX))
        case Ignore():
            return NOTHING


def _crashed(attempt: Attempt, error: BaseException, said: str, delay: timedelta) -> Crashed | None:
    """A crash, where it is one: a process that ended, or its memory did, perhaps of a neighbour's doing."""
    most = attempt.spec.max_crashes if attempt.spec else MAX_CRASHES
    match error:
        case HandlerDied():
            return Crashed(said, error.signature, delay, error.alone, most)
        case MemoryError():
            return Crashed(said, "out of memory", delay, False, most)
        case _:
            return None


def _rules(attempt: Attempt) -> Retry:
    """The task's rules, over the policy stored with the job where there is one."""
    rules = attempt.spec.retry if attempt.spec else Retry()
    if attempt.retry is None:
        return rules
    try:
        return rules.with_policy(from_json(attempt.retry))
    except ConfigError:
        return rules  # a policy that cannot be read must not cost the job its retry


def failed_by(error: BaseException) -> Failed:
    """What becomes of an outcome of the handler's own making that cannot be sent or recorded."""
    return Failed(describe_error(error))


def given_back(reason: str) -> Released:
    """The worker cannot run the job, or not to its end: any worker may take it, no attempt is counted."""
    return Released(reason)


def put_off(pause: timedelta, reason: str) -> Snooze:
    """The same after a pause."""
    return Snooze(pause, reason)


def after_refusal(lost: LeaseLost) -> Outcome | LeaseLost:
    """job.complete was refused: by the fence, to be recorded, or by our own deadline before it."""
    return given_back(NOT_RENEWED) if lost.reason == "not_renewed" else lost


def after_stop(attempt: Attempt) -> Outcome | None:
    """The worker itself stopped the handler: what is there to say?"""
    match attempt.stopping:
        case StopReason.TIMEOUT:
            return outcome_of(
                attempt, TimeoutError(f"{attempt.job.task} ran into its timeout and was told to stop")
            )
        case StopReason.LOST | StopReason.CANCEL:
            return None  # it is no longer ours: there is nothing to say, and no lease to say it for
        case StopReason.STILL_RUNNING:
            pause = min(
                max(STILL_RUNNING_PAUSE, timedelta(seconds=attempt.wait_for)), STILL_RUNNING_PAUSE_MAX
            )
            return put_off(pause, "an earlier attempt still runs in this worker")
        case StopReason.NOT_RENEWED:
            return given_back(NOT_RENEWED)
        case StopReason.HELD_UP:
            return given_back(HELD_UP)
        case StopReason.LEAVING | None:
            return given_back(STOPPING)
        case _:
            assert_never(attempt.stopping)


def _is_committed(attempt: Attempt, value: Any) -> bool:
    """Whether a handler returned what it has committed."""
    if isinstance(value, HANDLER_OUTCOMES):
        return False
    try:
        return encode_result(value, attempt.job.task) == attempt.committed_result
    except BadDocument:
        return False


def _unawaited(attempt: Attempt, form: str) -> str:
    job = attempt.job
    return (
        f"job {job.id} ({job.task}) called {form}() and did not await it, so nothing was sent: its rows and "
        f"its outcome commit apart, and a crash between them writes the rows twice. Write `await {form}(...)`"
    )


def _already(attempt: Attempt, value: Any) -> FaultlineError:
    job = attempt.job
    if isinstance(value, HANDLER_OUTCOMES):
        return AlreadySettled(
            f"job {job.id} ({job.task}) said {type(value).__name__} after job.complete() had settled it; "
            "its success stands: say it before the block, or raise it inside the block, which rolls it back"
        )
    return AlreadySettled(
        f"job {job.id} ({job.task}) returned a value after job.complete() had settled it; the "
        "committed result stays: pass it as job.complete(result=...) and return nothing"
    )
