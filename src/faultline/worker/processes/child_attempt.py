"""A job in hand in a child process; it reports to the worker what became of job.complete."""

import asyncio
import os
from functools import cached_property
from typing import Any, Final, Protocol

from faultline.task import TaskSpec
from faultline.worker.attempt import Attempt, StopReason
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.processes.child_protocol import (
    AskTimeLeft,
    AttemptStart,
    ChildMessage,
    LeaseRefusal,
    TimeLeft,
    TransactionPhase,
)
from faultline.worker.transactions.attempt_context import AttemptContext
from faultline.worker.transactions.pools import stores
from faultline.worker.transactions.transaction_base import TransactionPools

TOLD: Final = frozenset({"phase", "fenced", "lost", "offer"})

CONNECTIONS_MAX: Final = 1
"""A child runs one job at a time, and a job commits once."""


class ParentChannel(Protocol):
    """How a child speaks to its worker."""

    def send(self, message: ChildMessage) -> None: ...
    def ask(self, message: ChildMessage) -> TimeLeft: ...


class ConnectionPools:
    """The connections of one child, made when a handler first uses job.complete."""

    def __init__(self, dsn: str | None, pooler: str, loop: asyncio.AbstractEventLoop) -> None:
        self._dsn = dsn
        self._pooler = pooler
        self._loop = loop
        self.lease_table = LeaseTable.make(1)
        self.context = AttemptContext(lambda: self.transaction_pools)

    @cached_property
    def transaction_pools(self) -> TransactionPools:
        pools = stores(self._dsn, self._pooler, threads=CONNECTIONS_MAX, coroutines=CONNECTIONS_MAX)
        return TransactionPools(
            *pools, self.lease_table, self._loop, os.getpid(), self._pooler != "transaction"
        )

    def close(self, loop: asyncio.Runner) -> None:
        if "transaction_pools" in self.__dict__:
            self.transaction_pools.store.close()
            loop.run(self.transaction_pools.astore.close())
        self.lease_table.close()


class ChildAttempt(Attempt, eq=False, kw_only=True):
    """An attempt without a slot in the lease table, where all other leases are: it asks the worker.

    So the worker knows whether this job may have committed, whatever becomes of this process.
    """

    turn: int
    sender: ParentChannel
    loans: ConnectionPools

    @classmethod
    def begin(
        cls, begin: AttemptStart, spec: TaskSpec, sender: ParentChannel, loans: ConnectionPools
    ) -> "ChildAttempt":
        child_attempt = cls.of(
            begin.lease(), loans.lease_table, job=begin.job(), spec=spec, args=begin.args, retry=begin.retry,
            trace=begin.trace, timeout_at=0.0, turn=begin.turn, sender=sender, loans=loans,
        )  # fmt: skip
        child_attempt.job._context, child_attempt.job._attempt = loans.context, child_attempt
        return child_attempt

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in TOLD:
            lost = LeaseRefusal.of(self.lost)
            self.sender.send(TransactionPhase(self.turn, self.phase, self.fenced, lost, self.offer))

    def seconds_left(self, lease_table: LeaseTable) -> float:
        """Only the worker knows: it hears the pacemaker, and it may have told us to stop."""
        left = self.sender.ask(AskTimeLeft(self.turn))
        self.stopping = left.stopping
        return left.seconds

    def close(self) -> None:
        """The handler has ended: a thread that it left behind gets no connection any more."""
        self.stopping = self.stopping or StopReason.LEAVING
        self.job._attempt = None
        self.loans.lease_table.wipe(self.slot)
