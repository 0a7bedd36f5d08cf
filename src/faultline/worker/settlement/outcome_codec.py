"""An outcome as it travels: from a child process to its worker, from a worker to a server. One form for all.

As JSON over a child's pipe the record is sent as it is. Over gRPC (`remote/outcome_messages.py`) its kind is
the name of the field in `Result.outcome`, and its fields are those of that field's message.
"""

from datetime import timedelta
from typing import Final, Literal, assert_never

import msgspec

from faultline.outcome import (
    UNKNOWN_TASK,
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
from faultline.worker.settlement.settle import as_text

OutcomeKind = Literal["done", "failed", "crashed", "snoozed", "cancelled", "buried", "released"]

NO_REASON: Final = "buried by its handler"

NO_DELAY: Final = timedelta(0)


class OutcomeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One outcome as plain values, which JSON and the protocol can hold.

    >>> from_record(OutcomeRecord("cancelled", reason="withdrawn"))
    Cancel('withdrawn')
    """

    kind: OutcomeKind
    result: str | None = None
    error: str | None = None
    reason: str | None = None
    delay: timedelta | None = None
    signature: str | None = None
    alone: bool = False
    max_crashes: int | None = None


def to_record(outcome: Outcome) -> OutcomeRecord:
    """What is sent.

    >>> to_record(Failed("ValueError: no such order")).kind
    'failed'
    """
    match outcome:
        case Done(result):
            return OutcomeRecord("done", result=result)
        case Failed(error, delay):
            return OutcomeRecord("failed", error=as_text(error, None), delay=delay)
        case Crashed(error, signature, delay, alone, most):
            return OutcomeRecord(
                "crashed", error=as_text(error, None), delay=delay, signature=signature, alone=alone,
                max_crashes=most,
            )  # fmt: skip
        case Snooze(delay, reason):
            return OutcomeRecord("snoozed", reason=as_text(reason), delay=delay)
        case Cancel(reason):
            return OutcomeRecord("cancelled", reason=as_text(reason))
        case Dead(reason, error):
            kept = None if error is None else as_text(error, None)
            return OutcomeRecord("buried", reason=as_text(reason), error=kept)
        case Released(reason, delay):
            return OutcomeRecord("released", reason=as_text(reason), delay=delay)
        case Unserved(delay):
            return OutcomeRecord("released", reason=UNKNOWN_TASK, delay=delay)
        case _:
            assert_never(outcome)


def from_record(record: OutcomeRecord) -> Outcome:
    """What was sent.

    >>> from_record(OutcomeRecord("done", result='"sent"'))
    Done(result='"sent"')
    """
    match record.kind:
        case "done":
            return Done(record.result)
        case "failed":
            return Failed(record.error or "", record.delay)
        case "crashed":
            signature, most = record.signature or "", record.max_crashes
            return Crashed(record.error or "", signature, record.delay, record.alone, most)
        case "snoozed":
            return Snooze(record.delay or NO_DELAY, record.reason or "")
        case "cancelled":
            return Cancel(record.reason or "")
        case "buried":
            return Dead(record.reason or NO_REASON, record.error)
        case "released" if record.reason == UNKNOWN_TASK:
            return Unserved(record.delay or NO_DELAY)
        case "released":
            return Released(record.reason or "", record.delay or NO_DELAY)
        case _:
            assert_never(record.kind)
