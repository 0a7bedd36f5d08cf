"""A job in hand: its lease, its slot in the lease table, and how far it has come."""

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, Self
from uuid import UUID

import msgspec

from faultline.errors import LeaseLost
from faultline.job import Job
from faultline.lease import Lease
from faultline.outcome import Outcome
from faultline.task import TaskSpec
from faultline.telemetry.tracing import Processing
from faultline.worker.heartbeat.lease_table import HeartbeatReply, LeaseTable


class StopReason(StrEnum):
    """Why a handler was told to stop."""

    LOST = "lost"
    CANCEL = "cancel"
    NOT_RENEWED = "not_renewed"
    TIMEOUT = "timeout"
    LEAVING = "leaving"
    """Its worker ends."""
    STILL_RUNNING = "still_running"
    """An earlier attempt of its job goes on in this worker."""
    HELD_UP = "held_up"
    """Its worker lost too much of its time: by a late reply, or by a blocked loop."""


OUT_OF_TIME: Final = (StopReason.TIMEOUT, StopReason.HELD_UP)
LEASE_ENDS: Final = (StopReason.LOST, StopReason.NOT_RENEWED)
"""Why a handler has to be out at once: another attempt may begin, or has begun."""


LOST_SHARE: Final = 0.25
"""The part of its time that a job may lose in its worker; with less of it left no handler begins."""


class AttemptPhase(StrEnum):
    """How far an attempt has come with its job.complete; one without stays at its work."""

    WORKING = "working"
    IN_TRANSACTION = "in_transaction"
    COMMITTING = "committing"
    """The database answers, and nothing cuts it short."""
    COMMITTED = "committed"
    """Nothing more is to be recorded."""
    UNKNOWN = "unknown"
    """No row told what became of its commit: no fault of the handler, whatever it raises then."""


WORKING: Final = AttemptPhase.WORKING
COMMITTED: Final = AttemptPhase.COMMITTED
"""Short names for the hot path, where an attribute of an enum costs as much as a call."""

BLOCK_OPEN: Final = (AttemptPhase.IN_TRANSACTION, AttemptPhase.COMMITTING)


class Offer(msgspec.Struct, frozen=True):
    """What a handler has written in a transaction of its own; whether that commits, the rows tell."""

    entry: str
    """The ledger's word for it: `succeeded`, `failed` or `snoozed`."""
    result: str | None = None


class HandlerState(StrEnum):
    """Where the handler of an attempt is, and what became of one that would not stop."""

    HERE = "here"
    IN_CHILD = "in_child"
    GIVEN_UP = "given_up"
    """Its coroutine goes on although its attempt was settled."""
    ABANDONED = "abandoned"
    """Its thread goes on: the slot is given up."""


class Attempt(msgspec.Struct, eq=False):
    """One lease this worker holds.

    Keyed by itself, never by job: an old and a new lease of one job may meet here. A struct, because a
    worker makes tens of thousands a second.
    """

    job_id: int
    token: int
    claim: UUID
    lease_for: float
    taken_at: float
    job: Job
    spec: TaskSpec | None
    args: str
    retry: str | None
    timeout_at: float
    safe_at: float
    """The monotonic moment until which the lease is surely ours."""
    slot: int
    generation: int
    """Which writing of its slot in the lease table is this lease's; 0 once the lease has ended."""
    trace: str | None = None
    """The trace contexts kept with the job: a line each for who enqueued it, the claim before, this claim."""
    gate: int | None = None
    """The gate of its limit, where it has one: its next job can start when this lease has ended."""
    outcome: Outcome | None = None
    """How the attempt ended, while it waits for others to be recorded with."""
    met_busy: int = 0
    """How often its row was locked when it was to be recorded."""
    runner: asyncio.Task[Any] | None = None
    stopping: StopReason | None = None
    """Why the handler was told to stop."""
    told_at: float | None = None
    """When its runner was cancelled for it, by the monotonic clock."""
    handler: HandlerState = HandlerState.HERE
    phase: AttemptPhase = AttemptPhase.WORKING
    is_excused: bool = False
    """True while the end of its time is no fault of its handler.

    The handler waits for a thread or a process, or a blocked loop kept it from its work.
    """
    warned: bool = False
    """True once the log says that its handler goes on."""
    wait_for: float = 0.0
    """Seconds until its job is tried again, where an earlier attempt still runs here."""
    fenced: bool = False
    """True while its own transaction holds its row's lock: no heartbeat renews it, and no reaper takes it."""
    lost: LeaseLost | None = None
    """What job.complete was refused with: it stands, even when the handler swallowed it."""
    offer: Offer | None = None
    """Set by complete_in, fail_in and snooze_in: the rows are asked before anything is recorded."""
    unawaited: str | None = None
    """The call of these three that its handler made on an async connection, and has not awaited yet."""
    committed_result: str | None = None
    """The result that its own transaction has committed."""
    afterword: str | None = None
    """What its handler raised after its success was committed; kept beside the success."""
    cut: Callable[[], None] | None = None
    """Ends the connection of its open job.complete, at once and without a word to the server."""
    span: Processing | None = None
    """The span of its handler, where a tracer is installed."""
    ran_for: float | None = None
    """Seconds its handler took, where there is a listener."""
    ended_as: str | None = None
    """How its lease ended, where that does not follow from its outcome."""

    @classmethod
    def of(cls, lease: Lease, lease_table: LeaseTable, **rest: Any) -> Self:
        """An attempt for a lease, which goes into the lease table; a claimer makes its hundreds by itself."""
        slot, generation = lease_table.write(
            lease.job_id, lease.token, lease.claim.bytes, lease.lease_for, lease.taken_at
        )
        return cls(*lease, safe_at=lease.runs_out_at, slot=slot, generation=generation, **rest)

    @property
    def lease(self) -> Lease:
        return Lease(self.job_id, self.token, self.claim, self.lease_for, self.taken_at)

    def heard(self, lease_table: LeaseTable) -> HeartbeatReply | None:
        """The pacemaker's last word on this lease; a renewal moves the end until which it is surely ours."""
        answer = lease_table.answer(self.slot, self.generation)
        if answer is not None and (answer.word == "held" or (answer.word == "busy" and self.fenced)):
            self.safe_at = max(self.safe_at, answer.safe_until)
        return answer

    def seconds_left(self, lease_table: LeaseTable) -> float:
        self.heard(lease_table)
        return self.safe_at - time.monotonic()

    def reason_to_stop(self, lease_table: LeaseTable, now: float) -> StopReason | None:
        """Why its handler has to stop now; None while it may go on."""
        answer = self.heard(lease_table)
        if answer is not None and answer.word in ("lost", "cancel"):
            return StopReason(answer.word)
        # Before the lease ends, not when: the handler needs a moment to stop, and the clock here is the
        # earlier one.
        if now >= self.safe_at - self.lease_for * 0.1:
            return StopReason.NOT_RENEWED
        if now >= self.timeout_at:
            return StopReason.HELD_UP if self.is_excused or self.runner is None else StopReason.TIMEOUT
        return None

    def reason_not_to_begin(self, lease_table: LeaseTable, now: float) -> StopReason | None:
        """Why its handler is not started, where its claim was answered late or the loop was blocked.

        The database counts the time from the claim. A handler that begins gets most of it, and so may be
        blamed for a timeout.
        """
        if why := self.reason_to_stop(lease_table, now):
            return why
        return StopReason.HELD_UP if self.has_lost_too_much(now - self.taken_at) else None

    def has_lost_too_much(self, seconds: float) -> bool:
        """Whether so many seconds are too much of its time."""
        return seconds > (self.timeout_at - self.taken_at) * LOST_SHARE

    def stop(self, why: StopReason) -> None:
        """Tell the handler to stop: an async one is cancelled, one in a thread finds `job.lost`."""
        self.stopping = why
        self.job._lose()
        self.cancel_task()

    def cancel_task(self) -> None:
        """Cancel the runner, once, and not in the middle of a commit: that one the database answers."""
        is_committing = self.phase is AttemptPhase.COMMITTING
        if self.runner is not None and self.told_at is None and not is_committing:
            self.told_at = time.monotonic()
            if self.cut is not None and self.stopping in LEASE_ENDS:
                # The line may be dead: a ROLLBACK or a cancel sent into it would keep the handler in its
                # block while the job runs elsewhere.
                self.cut()
            self.runner.cancel()
