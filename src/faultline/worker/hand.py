"""A job in hand: its lease, its place on the board, and how far it has come."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Self
from uuid import UUID

import msgspec

from faultline.errors import LeaseLost
from faultline.job import Job
from faultline.lease import Lease
from faultline.outcome import Done, Failed
from faultline.task import TaskSpec
from faultline.telemetry.tracing import Processing
from faultline.worker.board import Answer, Board

LEASE_ENDS = ("lost", "not_renewed")
"""Why a handler has to be out at once: another attempt may begin, or has begun."""


class Hand(msgspec.Struct, eq=False):
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
    """Which writing of its slot on the board is this lease's; 0 once the lease has ended."""
    trace: str | None = None
    """The trace contexts kept with the job: a line each for who enqueued it, the claim before, this claim."""
    outcome: Done | Failed | None = None
    """How the attempt ended, while it waits for others to be recorded with."""
    met_busy: int = 0
    """How often its row was locked by somebody when it was to be recorded."""
    runner: asyncio.Task[Any] | None = None
    stopping: str | None = None
    """Why the handler was told to stop: lost, cancel, not_renewed, timeout, leaving or still_running."""
    told: bool = False
    """True once its runner was cancelled for it."""
    committing: bool = False
    """True while job.transaction speaks its last words: the database answers, nobody cuts them short."""
    fenced: bool = False
    """True while its own transaction holds its row's lock: no beat renews it, and nobody takes it."""
    settled: bool = False
    """True once job.transaction has committed: nothing more is to be said."""
    lost: LeaseLost | None = None
    """What job.transaction was refused with: it stands, even when the handler swallowed it."""
    unknown: bool = False
    """True once no row told what became of its commit: no fault of the handler, whatever it raises then."""
    cut: Callable[[], None] | None = None
    """Ends the connection of its open job.transaction, at once and without a word to the server."""
    in_block: bool = False
    """True while a job.transaction of it is open: one at a time, and none when its handler returns."""
    abandoned: bool = False
    """True when its thread would not stop: the slot is given up, the thread may still run."""
    span: Processing | None = None
    """The span of its handler, where somebody traces."""
    ran_for: float | None = None
    """Seconds its handler took, where somebody counts."""
    ended_as: str | None = None
    """How its lease ended, where that does not follow from its outcome."""

    @classmethod
    def of(cls, lease: Lease, board: Board, **rest: Any) -> Self:
        """A hand for a lease, which is written on the board; a feeder makes its hundreds by itself."""
        slot, generation = board.write(
            lease.job_id, lease.token, lease.claim.bytes, lease.lease_for, lease.taken_at
        )
        return cls(*lease, safe_at=lease.runs_out_at, slot=slot, generation=generation, **rest)

    @property
    def lease(self) -> Lease:
        return Lease(self.job_id, self.token, self.claim, self.lease_for, self.taken_at)

    def heard(self, board: Board) -> Answer | None:
        """The pacemaker's last word on this lease; a renewal moves the end until which it is surely ours."""
        answer = board.answer(self.slot, self.generation)
        if answer is not None and (answer.word == "held" or (answer.word == "busy" and self.fenced)):
            self.safe_at = max(self.safe_at, answer.safe_until)
        return answer

    def seconds_left(self, board: Board) -> float:
        self.heard(board)
        return self.safe_at - time.monotonic()

    def stop(self, why: str) -> None:
        """Tell the handler to stop: an async one is cancelled, one in a thread finds `job.lost`."""
        self.stopping = why
        self.job._lose()
        self.press()

    def press(self) -> None:
        """Cancel the runner, once, and not in the middle of a commit: that one the database answers."""
        if self.runner is not None and not self.told and not self.committing:
            self.told = True
            if self.cut is not None and self.stopping in LEASE_ENDS:
                # The line may be dead: a ROLLBACK or a cancel sent into it would keep the handler in its
                # block while the job runs elsewhere.
                self.cut()
            self.runner.cancel()
