"""What a worker and its children say to each other: JSON with a length before it, and nothing that runs.

worker to child    Greeting, then Begin a job; Left answers Ask, Stop says that the lease is gone
child to worker    Ready, then for each job Began (or Unable, of a suspect), Ask and Now where it uses
                   job.complete, and Ended
"""

import struct
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from faultline.errors import LeaseLost, LossReason
from faultline.job import Job
from faultline.lease import Lease
from faultline.outcome import Outcome
from faultline.worker.attempt import AttemptPhase, Offer, StopReason
from faultline.worker.processes.import_path import ImportPath
from faultline.worker.settlement.outcome_codec import OutcomeRecord, from_record, to_record

T = TypeVar("T")

LENGTH: Final = struct.Struct("<I")

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""A result of 1 MiB may grow sixfold when it is quoted; what claims to be longer is no message of ours."""

_encoder: Final = msgspec.json.Encoder()


class ChildMessage(msgspec.Struct, frozen=True, tag=True):
    """Anything said over the wire."""


class ChildGreeting(ChildMessage, frozen=True):
    """The first word to a child: where the database is, where the handlers are, how to log."""

    dsn: str | None
    """None where the worker works over a server and knows no database."""
    pooler: str
    parent: int
    path: list[str]
    places: dict[str, ImportPath]
    log_json: bool | None
    log_level: int


class AttemptStart(ChildMessage, frozen=True):
    """Run one job. The claim id comes along: job.complete commits in the child.

    `turn` counts the jobs of this child; what is said of a job names it, since a thread that a handler
    left behind may speak while the next one runs.
    """

    turn: int
    id: int
    task: str
    queue: str
    attempt: int
    max_attempts: int
    crashes: int
    token: int
    key: str | None
    created_at: datetime
    claim: UUID
    lease_for: float
    taken_at: float
    args: str
    retry: str | None
    place: ImportPath | None = None
    """Where the handler of a suspect is: the greeting named those only that always run in children."""
    trace: str | None = None
    """The context of the span its worker began for it, where a tracer is installed."""
    key_seed: bytes | None = None

    @classmethod
    def of(
        cls,
        turn: int,
        lease: Lease,
        job: Job,
        args: str,
        retry: str | None,
        place: ImportPath | None = None,
        trace: str | None = None,
    ) -> "AttemptStart":
        return cls(
            turn, job.id, job.task, job.queue, job.attempt, job.max_attempts, job.crashes, job.token,
            job.key, job.created_at, lease.claim, lease.lease_for, lease.taken_at, args, retry,
            place, trace, job._key_seed,
        )  # fmt: skip

    def lease(self) -> Lease:
        return Lease(self.id, self.token, self.claim, self.lease_for, self.taken_at)

    def job(self) -> Job:
        return Job(
            self.id, self.task, self.queue, self.attempt, self.max_attempts, self.crashes, self.token,
            self.key, self.created_at, None, self.key_seed,
        )  # fmt: skip


class TimeLeft(ChildMessage, frozen=True):
    """The answer to Ask: for how long the lease is surely ours, and whether the handler was told to stop."""

    seconds: float
    stopping: StopReason | None


class StopAttempt(ChildMessage, frozen=True):
    """The lease is gone, or the time is up: end now, or be killed in a moment."""


class ChildReady(ChildMessage, frozen=True):
    """The child has imported what it needs; `unable` has the reason for each task that it could not."""

    unable: dict[str, str]


class ChildUnable(ChildMessage, frozen=True):
    """The handler of a suspect cannot be found here; nothing of it has run."""

    turn: int
    why: str


class AttemptBegan(ChildMessage, frozen=True):
    """The handler is there and is called now: what happens from here on is its own doing."""

    turn: int


class AskTimeLeft(ChildMessage, frozen=True):
    """May I commit?"""

    turn: int


class LeaseRefusal(msgspec.Struct, frozen=True):
    """A refusal of the fence, as facts."""

    current_token: int | None
    reason: LossReason

    @classmethod
    def of(cls, lost: LeaseLost | None) -> "LeaseRefusal | None":
        return None if lost is None else cls(lost.current_token, lost.reason)


class TransactionPhase(ChildMessage, frozen=True):
    """How far job.complete has come."""

    turn: int
    phase: AttemptPhase
    fenced: bool
    lost: LeaseRefusal | None
    offer: Offer | None = None


class AttemptEnded(ChildMessage, frozen=True):
    """The handler has ended: with an outcome, or by the fence, or with nothing more to say."""

    turn: int
    outcome: OutcomeRecord | None = None
    lost: LeaseRefusal | None = None
    afterword: str | None = None
    """What the handler raised after its success was committed."""


ToChild = ChildGreeting | AttemptStart | TimeLeft | StopAttempt
FromChild = ChildReady | ChildUnable | AttemptBegan | AskTimeLeft | TransactionPhase | AttemptEnded


def ended(turn: int, outcome: Outcome | LeaseLost | None, afterword: str | None = None) -> AttemptEnded:
    """How a handler ended, as it travels.

    >>> from faultline.outcome import Cancel
    >>> ended(1, Cancel("withdrawn")).outcome.kind
    'cancelled'
    """
    if isinstance(outcome, LeaseLost):
        return AttemptEnded(turn, lost=LeaseRefusal.of(outcome))
    return AttemptEnded(turn, None if outcome is None else to_record(outcome), afterword=afterword)


def ending_of(told: AttemptEnded, lease: Lease) -> Outcome | LeaseLost | None:
    """How it ended, as it was told."""
    if told.lost is not None:
        return lease_lost(lease, told.lost)
    return None if told.outcome is None else from_record(told.outcome)


def lease_lost(lease: Lease, lost: LeaseRefusal) -> LeaseLost:
    return LeaseLost(lease.job_id, lease.token, lost.current_token, lost.reason)


def framed(message: ChildMessage) -> bytes:
    """A message as bytes, its length before it."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


class MessageFrames(Generic[T]):
    """Bytes in, as they come; messages out, when they are whole.

    >>> first, second = framed(AskTimeLeft(1)), framed(ChildReady({}))
    >>> frames = frames_from_child()
    >>> list(frames.feed(first + second[:3])), list(frames.feed(second[3:]))
    ([AskTimeLeft(turn=1)], [ChildReady(unable={})])
    """

    def __init__(self, kind: Any) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[T]:
        """The messages that are whole now; ValueError when one is none of ours, behind all before it."""
        self._data += data
        while len(self._data) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._data)
            if length > MESSAGE_BYTES_MAX:
                raise ValueError(f"a message of {length} bytes")
            end = LENGTH.size + length
            if len(self._data) < end:
                return
            message: T = self._decoder.decode(bytes(self._data[LENGTH.size : end]))
            del self._data[:end]
            yield message


def frames_to_child() -> MessageFrames[ToChild]:
    return MessageFrames(ToChild)


def frames_from_child() -> MessageFrames[FromChild]:
    return MessageFrames(FromChild)
