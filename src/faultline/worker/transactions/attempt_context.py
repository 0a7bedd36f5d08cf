"""AttemptContext: what a job's own methods call while its handler runs, in a worker or in a child of it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from psycopg import IsolationLevel

from faultline.errors import LeaseLost
from faultline.job import CompletionBlock, Job
from faultline.worker.attempt import Attempt
from faultline.worker.settlement import settle_in
from faultline.worker.transactions.transaction import FencedTransaction, WorkTransaction
from faultline.worker.transactions.transaction_base import TransactionPools


class AttemptContext:
    """Finds the attempt of a job, and the pools of this process."""

    def __init__(self, pools: Callable[[], TransactionPools]) -> None:
        self._pools = pools

    def complete(self, job: Job, result: Any, isolation: IsolationLevel | None) -> CompletionBlock:
        return WorkTransaction(_attempt(job), self._pools(), result, isolation)

    def fenced(self, job: Job, isolation: IsolationLevel | None) -> CompletionBlock:
        return FencedTransaction(_attempt(job), self._pools(), None, isolation)

    def complete_in(self, job: Job, conn: Any, result: Any, *, savepoint: bool) -> Awaitable[None] | None:
        return settle_in.complete_in(_attempt(job), conn, result, savepoint=savepoint)

    def fail_in(
        self, job: Job, conn: Any, error: BaseException | str, delay: timedelta | None, *, savepoint: bool
    ) -> Awaitable[None] | None:
        return settle_in.fail_in(_attempt(job), conn, error, delay, savepoint=savepoint)

    def snooze_in(
        self, job: Job, conn: Any, delay: timedelta, reason: str, *, savepoint: bool
    ) -> Awaitable[None] | None:
        return settle_in.snooze_in(_attempt(job), conn, delay, reason, savepoint=savepoint)


def _attempt(job: Job) -> Attempt:
    """The attempt in hand; none of a handler that was told to stop, and goes on."""
    attempt: Attempt | None = job._attempt
    if attempt is None:
        raise LeaseLost(job.id, job.token, None, "not_renewed")
    return attempt
