"""A job in hand: its lease, its place on the board, and how far it has come."""

import asyncio
import time
from typing import Any

from faultline.errors import LeaseLost
from faultline.job import Job
from faultline.lease import Lease
from faultline.task import TaskSpec
from faultline.worker.board import Answer, Board


class Hand:
    """One lease this worker holds.

    Keyed by itself, never by job: an old and a new lease of one job may meet here. What most jobs never
    come to is said once for the class, since a worker makes tens of thousands a second.
    """

    runner: asyncio.Task[Any] | None = None
    stopping: str | None = None
    """Why the handler was told to stop: lost, cancel, not_renewed, timeout, leaving or still_running."""
    told = False
    """True once its runner was cancelled for it."""
    committing = False
    """True while job.transaction speaks its last words: the database answers, nobody cuts them short."""
    fenced = False
    """True while its own transaction holds its row's lock: no beat renews it, and nobody takes it."""
    settled = False
    """True once job.transaction has committed: nothing more is to be said."""
    lost: LeaseLost | None = None
    """What job.transaction was refused with: it stands, even when the handler swallowed it."""
    abandoned = False
    """True when its thread would not stop: the slot is given up, the thread may still run."""

    def __init__(
        self,
        lease: Lease,
        job: Job,
        spec: TaskSpec | None,
        args: str,
        retry: str | None,
        timeout_at: float,
        board: Board,
    ) -> None:
        self.lease = lease
        self.job = job
        self.spec = spec
        self.args = args
        self.retry = retry
        self.timeout_at = timeout_at
        self.safe_at = lease.taken_at + lease.lease_for
        self.slot, self.generation = board.write(lease)

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
            self.runner.cancel()
