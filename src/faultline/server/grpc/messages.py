"""Conversion of rows to messages and of messages to values."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

from faultline import bounds
from faultline.args.document import check_document
from faultline.errors import BadDocument, LeaseLost, OutOfBounds
from faultline.job import JobInfo, NewJob
from faultline.lease import Lease
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.task import MAX_ATTEMPTS
from faultline.telemetry.tracing import context_of
from faultline.unique import check_key_rule

MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

REASONS: Final = {
    "token_mismatch": worker_pb2.REASON_TOKEN_MISMATCH,
    "settled": worker_pb2.REASON_SETTLED,
    "cancelled": worker_pb2.REASON_CANCELLED,
    "gone": worker_pb2.REASON_GONE,
}

PULSES: Final = {
    "held": worker_pb2.PULSE_HELD,
    "lost": worker_pb2.PULSE_LOST,
    "cancel": worker_pb2.PULSE_CANCEL,
    "busy": worker_pb2.PULSE_BUSY,
}

ENDS: Final = {
    name.removeprefix("END_").lower(): cast("worker_pb2.End", end)
    for name, end in worker_pb2.End.items()
    if end
}
"""How a lease ended, by the word of the ledger."""


def milliseconds(span: timedelta) -> int:
    """Whole milliseconds, rounded down: the lease told is shorter than the real one, never longer."""
    return span // MILLISECOND


def span(field: str, ms: int, longest: timedelta = bounds.DELAY_MAX) -> timedelta:
    """A duration as it came in a message, or OutOfBounds with the field's name."""
    if ms > longest // MILLISECOND:
        raise OutOfBounds(f"{field} is {ms} ms; it goes to {longest // MILLISECOND}")
    return timedelta(milliseconds=ms)


def microseconds(moment: datetime) -> int:
    """A moment in a message: seconds since 1970."""
    return round(moment.timestamp() * 1_000_000)


def refusal_message(lost: LeaseLost) -> worker_pb2.Refusal:
    """The reason that a fence gave."""
    return refusal(lost.job_id, lost.token, lost.reason, lost.current_token)


def refusal(job_id: int, token: int, reason: str | None, current_token: int | None) -> worker_pb2.Refusal:
    """The same from its parts."""
    return worker_pb2.Refusal(
        job_id=job_id, token=token, reason=REASONS.get(reason or "gone", worker_pb2.REASON_GONE),
        current_token=current_token,
    )  # fmt: skip


def leases(proofs: Iterable[worker_pb2.Proof], most: int) -> list[Lease]:
    """The leases that a message names, each once; OutOfBounds for what cannot be one."""
    claims = ClaimIds()
    named = [Lease(proof.job_id, proof.token, claims[proof.claim], 0.0, 0.0) for proof in proofs]
    check_names(named, most)
    return named


def check_names(named: Sequence[tuple[Any, ...]], most: int) -> None:
    """Refuse too many leases, or one lease twice; each lease begins with job and token."""
    if len(named) > most:
        raise OutOfBounds(f"a message names at most {most} leases; this one names {len(named)}")
    # Answers name a lease by job and token: two leases that differ only in the claim would be ambiguous.
    if len({lease[:2] for lease in named}) < len(named):
        raise OutOfBounds("a message names each lease once; one job and token is named twice")


class ClaimIds(dict[bytes, UUID]):
    """The claim ids of one message, by their bytes: a message has few of them, each for hundreds of jobs."""

    def __missing__(self, claim: bytes) -> UUID:
        made = self[claim] = claim_id(claim)
        return made


def claim_id(claim: bytes) -> UUID:
    """A claim id as it travels: sixteen bytes."""
    if len(claim) != 16:
        raise OutOfBounds(f"a claim is 16 bytes; got {len(claim)}")
    return UUID(bytes=claim)


def new_job(asked: client_pb2.NewJob, place: str = "") -> NewJob:
    """The job that a client submits, with the checks of every other API."""
    if asked.HasField("expires_at_us") and asked.HasField("expires_in_ms"):
        raise OutOfBounds(f"{place}expires_at_us and expires_in_ms both say when it expires; give one")
    if asked.HasField("run_at_us") and asked.HasField("delay_ms"):
        raise OutOfBounds(f"{place}run_at_us and delay_ms both say when it is due; give one of them")
    return NewJob(
        task=bounds.check_task_name(asked.task),
        args=_document(asked.args, f"{place}args"),
        queue=bounds.check_queue_name(asked.queue or "default"),
        priority=bounds.check_priority(asked.priority),
        run_at=bounds.check_run_at(_moment(asked.run_at_us)) if asked.HasField("run_at_us") else None,
        delay=_span_of(asked, "delay_ms", place),
        max_attempts=_attempts(asked),
        lease_for=_span_of(asked, "lease_ms", place),
        timeout=_span_of(asked, "timeout_ms", place),
        retry=_rules(asked, place),
        key=bounds.check_key(asked.key) if asked.HasField("key") else None,
        key_for=_span_of(asked, "key_for_ms", place),
        key_rule=check_key_rule(asked.key_rule) if asked.key_rule else None,
        expires_at=_expires_at(asked),
        expires_in=_span_of(asked, "expires_in_ms", place),
        trace=trace_in(asked.trace),
    )


def _expires_at(asked: client_pb2.NewJob) -> datetime | None:
    if not asked.HasField("expires_at_us"):
        return None
    return bounds.check_run_at(_moment(asked.expires_at_us), "expires_at_us")


def trace_in(text: str) -> str | None:
    """A trace context from a message; an invalid one counts as none, and is no error.

    >>> trace_in("nonsense") is trace_in("") is None
    True
    """
    return context_of(*text.split(" ", 1)) if text else None


def _attempts(asked: client_pb2.NewJob) -> int:
    return bounds.check_max_attempts(asked.max_attempts) if asked.HasField("max_attempts") else MAX_ATTEMPTS


def _rules(asked: client_pb2.NewJob, place: str) -> str | None:
    if not asked.HasField("retry"):
        return None
    if len(asked.retry) > bounds.RETRY_BYTES_MAX:  # it travels with each claim of the job
        raise OutOfBounds(
            f"{place}retry is of at most {bounds.RETRY_BYTES_MAX} bytes; got {len(asked.retry)}"
        )
    return _document(asked.retry.encode(), f"{place}retry")


def _span_of(asked: Any, field: str, place: str) -> timedelta | None:
    return span(place + field, getattr(asked, field)) if asked.HasField(field) else None


def _moment(us: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        raise OutOfBounds("run_at_us lies outside the years 2000 to 2200") from None


def _document(data: bytes, subject: str) -> str:
    if not data:
        return "{}"
    check_document(data, subject, kind=dict)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadDocument(f"{subject} is not UTF-8") from None


def info_message(info: JobInfo, args: bytes, result: bytes | None) -> client_pb2.JobInfo:
    """A job as it was read back."""
    message = client_pb2.JobInfo(
        id=info.id, state=info.state, ended=info.state.ended, task=info.task, queue=info.queue,
        priority=info.priority, args=args, result=result, attempt=info.attempt, crashes=info.crashes,
        max_attempts=info.max_attempts, run_at_us=microseconds(info.run_at),
        created_at_us=microseconds(info.created_at), worker=info.worker, token=info.token, error=info.error,
        key=info.key, damage=info.damage,
    )  # fmt: skip
    for field, moment in (
        ("claimed_at_us", info.claimed_at),
        ("lease_until_us", info.lease_until),
        ("finished_at_us", info.finished_at),
    ):
        if moment is not None:
            setattr(message, field, microseconds(moment))
    return message
