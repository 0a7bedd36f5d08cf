"""What a worker and its children say to each other: JSON with a length before it, and nothing that runs.

worker to child    Greeting, then Begin a job; Left answers Ask, Stop says that the lease is gone
child to worker    Ready, then for each job Began (or Unable, of a suspect), Ask and Now where it uses
                   job.transaction, and Ended
"""

import struct
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from faultline.errors import LeaseLost, LossReason
from faultline.job import Job
from faultline.lease import Lease
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Outcome, Released, Snooze
from faultline.worker.places import Place
from faultline.worker.settle import as_text

T = TypeVar("T")

LENGTH: Final = struct.Struct("<I")

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""A result of 1 MiB may grow sixfold when it is quoted; what claims to be longer is no message of ours."""

_encoder: Final = msgspec.json.Encoder()


class Message(msgspec.Struct, frozen=True, tag=True):
    """Anything said over the wire."""


class Greeting(Message, frozen=True):
    """The first word to a child: where the database is, where the handlers are, how to log."""

    dsn: str | None
    """None where the worker works over a server and knows no database."""
    pooler: str
    parent: int
    path: list[str]
    places: dict[str, Place]
    log_json: bool | None
    log_level: int


class Begin(Message, frozen=True):
    """Run one job. The claim id comes along: job.transaction commits in the child.

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
    place: Place | None = None
    """Where the handler of a suspect is: the greeting named those only that always run in children."""
    trace: str | None = None
    """The context of the span its worker began for it, where somebody traces."""
    key_seed: bytes | None = None

    @classmethod
    def of(
        cls,
        turn: int,
        lease: Lease,
        job: Job,
        args: str,
        retry: str | None,
        place: Place | None = None,
        trace: str | None = None,
    ) -> "Begin":
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


class Left(Message, frozen=True):
    """The answer to Ask: for how long the lease is surely ours, and whether the handler was told to stop."""

    seconds: float
    stopping: str | None


class Stop(Message, frozen=True):
    """The lease is gone, or the time is up: end now, or be killed in a moment."""


class Ready(Message, frozen=True):
    """The child has imported what it needs; `unable` has the reason for each task that it could not."""

    unable: dict[str, str]


class Unable(Message, frozen=True):
    """The handler of a suspect cannot be found here; nothing of it has run."""

    turn: int
    why: str


class Began(Message, frozen=True):
    """The handler is there and is called now: what happens from here on is its own doing."""

    turn: int


class Ask(Message, frozen=True):
    """May I commit?"""

    turn: int


class Lost(msgspec.Struct, frozen=True):
    """A refusal of the fence, as facts."""

    current_token: int | None
    reason: LossReason

    @classmethod
    def of(cls, lost: LeaseLost | None) -> "Lost | None":
        return None if lost is None else cls(lost.current_token, lost.reason)


class Now(Message, frozen=True):
    """How far job.transaction has come."""

    turn: int
    fenced: bool
    committing: bool
    settled: bool
    lost: Lost | None


class Ended(Message, frozen=True):
    """The handler has ended, with this outcome."""

    turn: int
    kind: str
    text: str | None = None
    delay: timedelta | None = None
    lost: Lost | None = None
    signature: str | None = None


ToChild = Greeting | Begin | Left | Stop
FromChild = Ready | Unable | Began | Ask | Now | Ended


def ended(turn: int, outcome: Outcome | LeaseLost | None) -> Ended:
    """An outcome as it travels.

    >>> ended(1, Cancel("withdrawn"))
    Ended(turn=1, kind='Cancel', text='withdrawn', delay=None, lost=None, signature=None)
    """
    kind = type(outcome).__name__
    match outcome:
        case Done(result):
            return Ended(turn, kind, result)
        case Failed(error, delay):
            return Ended(turn, kind, as_text(error, None), delay)
        case Crashed(error, signature, delay):
            return Ended(turn, kind, as_text(error, None), delay, signature=signature)
        case Snooze(delay, reason):
            return Ended(turn, kind, as_text(reason), delay)
        case Cancel(reason) | Dead(reason) | Released(reason):
            return Ended(turn, kind, as_text(reason))
        case LeaseLost():
            return Ended(turn, kind, lost=Lost.of(outcome))
        case None:
            return Ended(turn, kind)


def outcome_of(told: Ended, lease: Lease) -> Outcome | LeaseLost | None:
    """The outcome that was told.

    >>> outcome_of(Ended(1, "Done", '"sent"'), Lease(7, 3, UUID(int=1), 15.0, 0.0))
    Done(result='"sent"')
    """
    text = told.text or ""
    match told.kind:
        case "Done":
            return Done(told.text)
        case "Failed":
            return Failed(text, told.delay)
        case "Crashed":
            return Crashed(text, told.signature or "", told.delay)
        case "Snooze":
            return Snooze(told.delay or timedelta(0), text)
        case "Cancel":
            return Cancel(text)
        case "Dead":
            return Dead(text)
        case "Released":
            return Released(text)
        case "LeaseLost":
            return lease_lost(lease, told.lost)
        case "NoneType":
            return None
        case other:
            raise ValueError(f"a child told of an outcome that does not exist: {other[:40]!a}")


def lease_lost(lease: Lease, lost: Lost | None) -> LeaseLost:
    if lost is None:
        return LeaseLost(lease.job_id, lease.token, None, "gone")
    return LeaseLost(lease.job_id, lease.token, lost.current_token, lost.reason)


def framed(message: Message) -> bytes:
    """A message as bytes, its length before it."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


class Frames(Generic[T]):
    """Bytes in, as they come; messages out, when they are whole.

    >>> data = framed(Ask(1)) + framed(Ready({}))
    >>> frames = frames_from_child()
    >>> list(frames.feed(data[:30])), list(frames.feed(data[30:]))
    ([Ask(turn=1)], [Ready(unable={})])
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


def frames_to_child() -> Frames[ToChild]:
    return Frames(ToChild)


def frames_from_child() -> Frames[FromChild]:
    return Frames(FromChild)
