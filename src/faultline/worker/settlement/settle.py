"""Outcome in, Call out: the one match that decides which write records how an attempt ended."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, assert_never

import psycopg

from faultline.errors import BadDocument, FaultlineError, InputError
from faultline.lease import Held, Lease
from faultline.outcome import (
    HANDLER_OUTCOMES,
    Cancel,
    Crashed,
    Dead,
    Done,
    Failed,
    Outcome,
    Released,
    Snooze,
    Unserved,
)
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import SettleRefusal

REASON_CHARS_MAX = 4096
RETRY_PAUSE = timedelta(seconds=1)
"""How long a failed job waits whose rules do not say."""


def settle(lease: Lease, outcome: Outcome) -> Call[Any]:
    """Choose the one write that records how the attempt ended."""
    match outcome:
        case Done(result):
            return calls.complete(lease, result)
        case Failed(error, delay):
            return calls.fail(lease, error, RETRY_PAUSE if delay is None else delay)
        case Crashed(error, signature, delay, alone, most):
            return calls.crash(lease, error, signature, alone=alone, max_crashes=most, delay=delay)
        case Snooze(delay, reason):
            return calls.snooze(lease, delay, as_text(reason))
        case Cancel(reason):
            return calls.cancel_claimed(lease, as_text(reason))
        case Dead(reason, error):
            return calls.bury(lease, as_text(reason), None if error is None else as_text(error, None))
        case Released(reason, delay):
            return calls.release(lease, reason, delay)
        case Unserved(delay):
            return calls.snooze_unknown(lease, delay)
        case _:
            assert_never(outcome)


def done_many(
    leases: Sequence[Held], outcomes: Sequence[Any], worker: int | None = None
) -> Call[list[SettleRefusal]]:
    """The write that records many, all of them Done."""
    return calls.complete_many(leases, [outcome.result for outcome in outcomes], worker)


def failed_many(
    leases: Sequence[Held], outcomes: Sequence[Any], worker: int | None = None
) -> Call[list[SettleRefusal]]:
    """The same for many that are Failed."""
    errors = [outcome.error for outcome in outcomes]
    pauses = [RETRY_PAUSE if outcome.delay is None else outcome.delay for outcome in outcomes]
    return calls.fail_many(leases, errors, pauses, worker)


MANY: Final = {Done: done_many, Failed: failed_many}
"""The kinds of which many are recorded in one call."""


def is_recorded(outcome: Outcome, entry: str) -> bool:
    """Whether this lease's entry in the ledger is the one that this outcome makes, not another's."""
    match outcome:
        case Done():
            return entry == "succeeded"
        case Failed() | Crashed():
            return entry in ("failed", "dead")
        case Snooze():
            return entry == "snoozed"
        case Cancel():
            return entry == "cancelled"
        case Dead():
            return entry == "dead"
        case Released():
            return entry == "released"
        case Unserved():
            return entry in ("snoozed", "dead")
        case _:
            assert_never(outcome)


def ended_as(outcome: Outcome, answer: object) -> str:
    """How a lease ended, in one word; of a failure the database has said whether it was the last."""
    match outcome:
        case Done():
            return "succeeded"
        case Failed():
            return "dead" if answer == "dead" else "failed"
        case Crashed():
            return "dead" if answer == "dead" else "crashed"
        case Snooze():
            return "snoozed"
        case Cancel():
            return "cancelled"
        case Dead():
            return "dead"
        case Released():
            return "released"
        case Unserved():
            return "dead" if answer == "dead" else "snoozed"
        case _:
            assert_never(outcome)


def is_the_handlers(outcome: Outcome, trouble: BaseException) -> bool:
    """Whether it may be what the handler gave: a result that is no document, a delay out of bounds.

    Anything else says nothing about the handler. A success, above all, stays one.
    """
    if isinstance(outcome, Done):
        return outcome.result is not None and isinstance(trouble, BadDocument)
    by_its_words = isinstance(trouble, InputError) or not isinstance(trouble, FaultlineError | psycopg.Error)
    return isinstance(outcome, HANDLER_OUTCOMES) and by_its_words


def is_given_back(outcome: Outcome) -> bool:
    return isinstance(outcome, Released)


def needs_state(outcome: Outcome) -> bool:
    """Whether a server has to be asked how the lease ended: its answer to a settling does not tell."""
    return isinstance(outcome, Crashed | Unserved)


def as_text(reason: object, chars_max: int | None = REASON_CHARS_MAX) -> str:
    """A handler's own words, as text that PostgreSQL can hold."""
    said = str(reason)[:chars_max].replace("\0", "\\x00")
    return said if said.isascii() else said.encode("utf-8", "backslashreplace").decode()
