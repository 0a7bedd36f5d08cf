"""Settle a job inside a transaction of the user's own: `job.complete_in`, `fail_in` and `snooze_in`."""

import asyncio
import sys
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final, cast

from faultline import bounds
from faultline.args import encode_result
from faultline.errors import (
    AlreadySettled,
    FaultlineError,
    LeaseLost,
    NotInTransaction,
    SyncInAsync,
    TransactionOpen,
)
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.carrier import async_carrier, is_awaited, plain_carrier
from faultline.telemetry import describe_error
from faultline.worker.attempt import BLOCK_OPEN, COMMITTED, Attempt, Offer
from faultline.worker.settlement.settle import RETRY_PAUSE, as_text

COMPLETE: Final = "job.complete_in"
FAIL: Final = "job.fail_in"
SNOOZE: Final = "job.snooze_in"


def complete_in(attempt: Attempt, conn: Any, result: Any, *, savepoint: bool) -> Awaitable[None] | None:
    """Complete the job with the user's commit."""
    text = encode_result(result, attempt.job.task)
    call = calls.complete_in(attempt.lease, text, savepoint=savepoint)
    return _offer(attempt, conn, call, Offer("succeeded", text), COMPLETE)


def fail_in(
    attempt: Attempt, conn: Any, error: BaseException | str, delay: timedelta | None, *, savepoint: bool
) -> Awaitable[None] | None:
    """Fail the attempt with the user's commit."""
    said = describe_error(error) if isinstance(error, BaseException) else as_text(error, None)
    pause = RETRY_PAUSE if delay is None else bounds.check_delay(delay)
    call = calls.fail_in(attempt.lease, said, pause, savepoint=savepoint)
    return _offer(attempt, conn, call, Offer("failed"), FAIL)


def snooze_in(
    attempt: Attempt, conn: Any, delay: timedelta, reason: str, *, savepoint: bool
) -> Awaitable[None] | None:
    """Put the job off with the user's commit."""
    call = calls.snooze_in(attempt.lease, bounds.check_delay(delay), as_text(reason), savepoint=savepoint)
    return _offer(attempt, conn, call, Offer("snoozed"), SNOOZE)


def _offer(attempt: Attempt, conn: Any, call: Call[Any], offer: Offer, form: str) -> Awaitable[None] | None:
    _check_free(attempt, form)
    if is_awaited(conn):
        carried: Any = _carry_awaited(attempt, conn, call, offer, form)
        carried.__qualname__ = form  # what Python's own warning calls it, where it is never awaited
        attempt.unawaited = form
        return cast(Awaitable[None], carried)
    carrier = plain_carrier(conn, form)
    _refuse_in_a_loop(form)
    if not carrier.in_transaction():
        raise _no_transaction(form)
    try:
        carrier.run(call)
    except LeaseLost as lost:
        raise _refused(attempt, lost, form) from lost
    _offered(attempt, offer)
    return None


async def _carry_awaited(attempt: Attempt, conn: Any, call: Call[Any], offer: Offer, form: str) -> None:
    attempt.unawaited = None
    carrier = async_carrier(conn, form)
    if not await carrier.in_transaction():
        raise _no_transaction(form)
    try:
        await carrier.run(call)
    except LeaseLost as lost:
        raise _refused(attempt, lost, form) from lost
    _offered(attempt, offer)


def _offered(attempt: Attempt, offer: Offer) -> None:
    # Until the commit the job's row is locked by the user: a heartbeat that meets it has lost nothing.
    attempt.offer = offer
    attempt.fenced = True


def _check_free(attempt: Attempt, form: str) -> None:
    """Refuse before anything is sent what the database could not accept."""
    job = attempt.job
    if attempt.phase is COMMITTED:
        raise AlreadySettled(
            f"{form}: job {job.id} was completed before by job.complete(); a job commits once"
        )
    if attempt.phase in BLOCK_OPEN:
        raise TransactionOpen(f"{form}: job {job.id} has a job.complete() open; settle it by one of the two")
    if attempt.stopping is not None or job.lost:
        raise LeaseLost(job.id, job.token, None, "not_renewed")


def _refuse_in_a_loop(form: str) -> None:
    """A plain connection would stop the loop, unless `AsyncSession.run_sync` has lent it: that one awaits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    greenlet = sys.modules.get("greenlet")
    if greenlet and getattr(greenlet.getcurrent(), "__sqlalchemy_greenlet_provider__", False):
        return
    raise SyncInAsync(
        f"{form}() on a plain connection would block the running event loop and everything on it; nothing "
        "was sent. Await it on an async connection or session, or make the handler a plain `def`"
    )


def _refused(attempt: Attempt, lost: LeaseLost, form: str) -> FaultlineError:
    """The fence's refusal, kept: it stands even where the handler swallows it."""
    if lost.reason == "settled" and attempt.offer is not None:
        return AlreadySettled(
            f"{form}: job {lost.job_id} was settled by an earlier transaction of this handler; a job commits "
            "once"
        )
    attempt.lost = lost
    return lost


def _no_transaction(form: str) -> NotInTransaction:
    return NotInTransaction(
        f"{form}: this connection commits each statement by itself, so the job would be settled apart from "
        "your rows; nothing was written. Begin a transaction first"
    )
