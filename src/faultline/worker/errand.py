"""A job in a child's hand: as in the worker's, and what job.transaction comes to is told to the worker."""

import asyncio
import os
from functools import cached_property
from typing import Any, Final, Protocol

from psycopg import IsolationLevel

from faultline.errors import LeaseLost
from faultline.job import Job, Transaction
from faultline.task import TaskSpec
from faultline.worker.block import Lender
from faultline.worker.board import Board
from faultline.worker.hand import Hand
from faultline.worker.lending import stores
from faultline.worker.transaction import WorkTransaction
from faultline.worker.wire import Ask, Begin, Left, Lost, Message, Now

TOLD: Final = frozenset({"fenced", "committing", "settled", "lost"})

CONNECTIONS_MAX: Final = 1
"""A child runs one job at a time, and a job commits once."""


class Mouth(Protocol):
    """How a child speaks to its worker."""

    def say(self, message: Message) -> None: ...
    def ask(self, message: Message) -> Left: ...


class Loans:
    """The connections of one child, made when a handler first uses job.transaction."""

    def __init__(self, dsn: str | None, pooler: str, loop: asyncio.AbstractEventLoop) -> None:
        self._dsn = dsn
        self._pooler = pooler
        self._loop = loop
        self.board = Board.make(1)

    @cached_property
    def lender(self) -> Lender:
        pools = stores(self._dsn, self._pooler, threads=CONNECTIONS_MAX, coroutines=CONNECTIONS_MAX)
        return Lender(*pools, self.board, self._loop, os.getpid(), self._pooler != "transaction")

    def close(self, loop: asyncio.Runner) -> None:
        if "lender" in self.__dict__:
            self.lender.store.close()
            loop.run(self.lender.astore.close())
        self.board.close()


class Errand(Hand, eq=False, kw_only=True):
    """A hand without a place on the worker's board, where all other leases stand: it asks the worker.

    So the worker knows whether this job may have committed, whatever becomes of this process.
    """

    turn: int
    mouth: Mouth
    loans: Loans

    @classmethod
    def begin(cls, begin: Begin, spec: TaskSpec, mouth: Mouth, loans: Loans) -> "Errand":
        errand = cls.of(
            begin.lease(), loans.board, job=begin.job(), spec=spec, args=begin.args, retry=begin.retry,
            trace=begin.trace, timeout_at=0.0, turn=begin.turn, mouth=mouth, loans=loans,
        )  # fmt: skip
        errand.job._begin = errand._begin
        return errand

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in TOLD:
            lost = Lost.of(self.lost)
            self.mouth.say(Now(self.turn, self.fenced, self.committing, self.settled, lost))

    def seconds_left(self, board: Board) -> float:
        """Only the worker knows: it hears the pacemaker, and it may have told us to stop."""
        left = self.mouth.ask(Ask(self.turn))
        self.stopping = left.stopping
        return left.seconds

    def close(self) -> None:
        """The handler has ended: a thread that it left behind gets no connection any more."""
        self.stopping = self.stopping or "leaving"
        self.loans.board.wipe(self.slot)

    def _begin(self, job: Job, result: Any, isolation: IsolationLevel | None) -> Transaction:
        if self.stopping is not None:
            raise LeaseLost(job.id, job.token, None, "not_renewed")
        return WorkTransaction(self, self.loans.lender, result, isolation)
