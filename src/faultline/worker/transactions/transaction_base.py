"""What both forms of job.complete share: whose turn it is, what a commit needs, what the rows tell."""

import asyncio
import logging
import os
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from faultline.args import encode_result
from faultline.errors import (
    AlreadySettled,
    ConfigError,
    DatabaseError,
    FaultlineError,
    InputError,
    LeaseLost,
    LossReason,
    OutcomeUnknown,
    ReadOnlyServer,
    ServerUnavailable,
    SyncInAsync,
    TransactionEnded,
    TransactionOpen,
)
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.async_connection import ConnectionCutter
from faultline.store.lent import NOT_SET, end_loan
from faultline.store.pool import AsyncStore, Store
from faultline.store.servers.read_only import refused_by_server
from faultline.telemetry import emit
from faultline.telemetry.rate_limited import RateLimited
from faultline.worker.attempt import BLOCK_OPEN, Attempt, AttemptPhase, StopReason
from faultline.worker.call_errors import NO_ROW_TELLS, told
from faultline.worker.heartbeat.lease_table import LeaseTable

log = logging.getLogger("faultline.worker")

REFUSED = (ConfigError, DatabaseError, InputError, psycopg.Error)
"""What may be no fault of the handler when its commit meets it."""

NO_RESULT: Final = "null"

_seldom = RateLimited(5.0)


class TransactionPools(NamedTuple):
    """Lends handlers their connections: pools for threads and for the loop, made when first needed."""

    store: Store
    astore: AsyncStore
    lease_table: LeaseTable
    loop: asyncio.AbstractEventLoop
    pid: int
    own_session: bool
    """Whether a connection is a session: behind a pooler it is one only until the commit."""


class TransactionBase:
    """One block of a handler, in a thread or in the loop."""

    def __init__(
        self,
        attempt: Attempt,
        transaction_pools: TransactionPools,
        result: Any,
        isolation: IsolationLevel | None,
    ) -> None:
        if attempt.phase is AttemptPhase.COMMITTED:
            raise AlreadySettled(
                f"job {attempt.job.id} was settled by an earlier job.complete(); a job commits once"
            )
        self._attempt = attempt
        self._pools = transaction_pools
        self._result = encode_result(result, attempt.job.task)
        """As JSON; what the handler sets inside the block replaces it at the block's end."""
        self._isolation = isolation
        self._has_borrowed = False
        self._conn: Any = None
        self._lent: Any = None
        """The handler's own object for the session of `_conn`."""
        self._loan_ended = False
        self._closed_by_hand = False
        self._before = AttemptPhase.WORKING
        """The phase of the attempt outside this block."""
        self._cutter: ConnectionCutter | None = None

    def set_result(self, value: Any) -> None:
        """What an injected handler returned; the same may have been set on the connection."""
        if self._lent._result is NOT_SET:
            self._lent._result = value
        elif value is not None and value != self._lent._result:
            raise AlreadySettled(
                f"job {self._attempt.job.id} ({self._attempt.job.task}) set a result on its transaction and "
                "returned another value; nothing was committed: give one of the two"
            )

    def _end_loan(self) -> None:
        """A late use of the connection, by a task that goes on, must not reach the transaction of another."""
        if self._lent is not None and not self._loan_ended:
            self._loan_ended = True
            self._closed_by_hand = self._lent.closed and not self._lent.broken
            job = self._attempt.job
            end_loan(
                self._lent,
                f"the connection that job.complete() lent to job {job.id} ({job.task}) was used after the "
                "block had ended; nothing was sent. Write inside the block, or over a connection of your own",
            )

    def _is_clean(self) -> bool:
        """Whether the next handler may have this connection: nothing left open, rows as it expects them."""
        self._conn.row_factory = tuple_row
        return bool(self._conn.info.transaction_status == TransactionStatus.IDLE)

    def _take_turn(self) -> None:
        """One block at a time, in the process that holds the lease."""
        if os.getpid() != self._pools.pid:
            raise FaultlineError(
                "job.complete() was entered in a forked child, which has its parent's connections; "
                "commit in the parent"
            )
        if self._attempt.phase in BLOCK_OPEN:
            raise TransactionOpen(f"job {self._attempt.job_id} has a job.complete() open; a job commits once")
        self._before, self._attempt.phase = self._attempt.phase, AttemptPhase.IN_TRANSACTION

    def _leave_block(self) -> None:
        """The connection goes back; a commit that is under way ends by itself."""
        attempt = self._attempt
        attempt.cut = None
        if attempt.fenced:
            attempt.fenced = False
        if attempt.phase is AttemptPhase.IN_TRANSACTION:
            attempt.phase = self._before

    def _end_commit(self) -> None:
        """Where it came to nothing, the handler is back at its work."""
        if self._attempt.phase is AttemptPhase.COMMITTING:
            self._attempt.phase = self._before

    def _take_result(self) -> None:
        """The result that the handler has set inside the block; BadDocument rolls everything back."""
        if self._lent._result is not NOT_SET:
            self._result = encode_result(self._lent._result, self._attempt.job.task)

    def _last_call(self) -> Call[None]:
        """The statement before the commit: it fences the rows of the block, and here completes the job."""
        # No result is recorded as for a handler that returns nothing: to check a document costs 30 us.
        result = None if self._result == NO_RESULT else self._result
        return calls.complete(self._attempt.lease, result)

    def _has_committed(self) -> None:
        self._attempt.committed_result = self._result
        self._attempt.phase = AttemptPhase.COMMITTED

    def _check_begun(self) -> None:
        """Without its transaction the success would be recorded alone, whatever became of the rows."""
        if self._closed_by_hand or self._conn.info.transaction_status == TransactionStatus.IDLE:
            raise TransactionEnded(
                "the handler itself ended the transaction it was lent, by COMMIT, ROLLBACK or close(); leave "
                "that to job.complete(), and use conn.transaction() for a savepoint"
            )

    def _check_deadline(self) -> None:
        """Do not even try with a lease that may have ended: the database would refuse, but at a cost."""
        attempt = self._attempt
        if attempt.stopping or attempt.seconds_left(self._pools.lease_table) <= 0:
            reason: LossReason = "cancelled" if attempt.stopping is StopReason.CANCEL else "not_renewed"
            raise LeaseLost(attempt.job_id, attempt.token, None, reason)

    def _check_broken(self, error: BaseException) -> None:
        """A connection that broke inside the block is the database's failure, and is told as one."""
        if isinstance(error, psycopg.OperationalError) and self._conn.closed:
            raise ServerUnavailable(
                f"the connection broke inside job.complete(); nothing of it was committed: {error}"
            ) from error

    def _may_be_the_servers(self, error: BaseException) -> bool:
        """Whether a write in the block was refused as read-only, and the session is there to be asked."""
        return refused_by_server(error) and not self._conn.closed

    def _turned(self) -> ReadOnlyServer:
        """The server takes no writes any more: the attempt has not failed, and the session is left."""
        self._conn.refuses_writes = True
        return ReadOnlyServer(
            "the server turned read-only inside job.complete(); nothing of it was committed"
        )

    def _remember(self, error: BaseException) -> None:
        if isinstance(error, LeaseLost):
            self._attempt.lost = error

    def _judge(self, outcome: str, broken: Exception) -> None:
        """What the rows said of a commit whose reply was lost."""
        emit(
            "commit_resolved", logging.DEBUG, job_id=self._attempt.job_id, token=self._attempt.token,
            task=self._attempt.job.task, answer=outcome,
        )  # fmt: skip
        match outcome:
            case "succeeded":
                self._has_committed()
            case "running":
                if isinstance(broken, ReadOnlyServer):
                    raise broken
                raise ServerUnavailable(
                    "the connection broke before the commit; nothing was committed"
                ) from broken
            case "gone":
                self._attempt.phase = AttemptPhase.UNKNOWN
                raise OutcomeUnknown(
                    f"job {self._attempt.job_id}: the reply to its commit was lost, and {NO_ROW_TELLS}"
                ) from broken
            case _:
                lost = LeaseLost(self._attempt.job_id, self._attempt.token, None, "settled")
                self._remember(lost)
                raise lost from broken

    def _cannot_record(self, refused: Exception) -> ServerUnavailable:
        """The database records no success at all just now: the attempt has not failed, it is given back."""
        if _seldom.allows(""):
            log.warning(
                "the success of job %d (%s) could not be recorded, so its job.complete() was rolled back; "
                "it is tried again: %s", self._attempt.job_id, self._attempt.job.task, told(refused),
            )  # fmt: skip
        return ServerUnavailable(
            f"its success could not be recorded, so nothing of job.complete() was committed: {refused}"
        )

    def _give_up_if_late(self, trouble: Exception) -> None:
        """Past our own deadline: hands off, and let the watchdog decide."""
        if self._attempt.stopping or self._attempt.seconds_left(self._pools.lease_table) <= 0:
            self._attempt.phase = AttemptPhase.UNKNOWN
            raise OutcomeUnknown(
                f"job {self._attempt.job_id}: the connection broke in its commit and the database stayed "
                "away until the lease ended; the ledger will tell"
            ) from trouble


def check_loop(ours: asyncio.AbstractEventLoop | None) -> None:
    """`with` belongs in a thread, `async with` in the worker's own loop; else loops would stop or cross."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return
    if ours is None:
        raise SyncInAsync("job.complete() was entered by `with` in an async handler; use `async with`")
    if running is not ours:
        raise FaultlineError(
            "job.complete() was entered by `async with` outside the worker's loop; use `with`"
        )
