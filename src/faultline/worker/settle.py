"""Outcome in, Call out: the one match that decides which write records how an attempt ended."""

from datetime import timedelta
from typing import Any, assert_never

from faultline.lease import Lease
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Outcome, Released, Snooze
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.rows import Answer
from faultline.worker.hand import Hand

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
            return calls.drop_claimed(lease, as_text(reason))
        case Dead(reason):
            return calls.bury(lease, as_text(reason))
        case Released(reason):
            return calls.release(lease, reason)
        case _:
            assert_never(outcome)


def settle_many(hands: list[Hand], worker: int) -> Call[list[Answer]]:
    """The same for many that ended alike: all of them Done, or all of them Failed."""
    done = [hand.outcome.result for hand in hands if isinstance(hand.outcome, Done)]
    if done:
        return calls.complete_many(hands, done, worker)
    failed = [hand.outcome for hand in hands if isinstance(hand.outcome, Failed)]
    pauses = [RETRY_PAUSE if outcome.delay is None else outcome.delay for outcome in failed]
    return calls.fail_many(hands, [outcome.error for outcome in failed], pauses, worker)


def is_recorded(outcome: Outcome, entry: str) -> bool:
    """Whether this lease's entry in the ledger is the one this outcome makes, and not somebody else's."""
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
        case _:
            assert_never(outcome)


def as_text(reason: object, chars_max: int | None = REASON_CHARS_MAX) -> str:
    """A handler's own words, as text that PostgreSQL can hold."""
    said = str(reason)[:chars_max].replace("\0", "\\x00")
    return said.encode("utf-8", "backslashreplace").decode()
