"""job.transaction: the handler's rows, the job's success and its ledger entry, together or not at all."""

import asyncio
import os
import time
from types import TracebackType
from typing import Any, NamedTuple

import psycopg
from psycopg import AsyncConnection, Connection, IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from faultline.args import encode_result
from faultline.errors import (
    AlreadySettled,
    FaultlineError,
    LeaseLost,
    LossReason,
    OutcomeUnknown,
    ServerUnavailable,
    SyncInAsync,
    TransactionEnded,
    TransactionOpen,
)
from faultline.failpoints import reach
from faultline.store import calls
from faultline.store.faults import named_errors
from faultline.store.line import OUTAGE
from faultline.store.run import AsyncStore, Store
from faultline.worker.board import Board
from faultline.worker.hand import Hand

FENCE_FIRST = (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)

RESOLVE_PAUSE = 0.1

AS_NEW = "reset session authorization; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp;"
"""What a handler left in its session, the next one must not find: a role, a search_path, a lock."""


class Lender(NamedTuple):
    """Who lends a handler its connection: pools for threads and for the loop, made when first needed."""

    store: Store
    astore: AsyncStore
    board: Board
    loop: asyncio.AbstractEventLoop
    pid: int
    own_session: bool
    """Whether a connection is a session: behind a pooler it is not, and nothing can be put in order there."""


class WorkTransaction:
    """One block of a handler.

    The completing statement is its last, so the job's row is locked for a moment only.

    At REPEATABLE READ and above the fence comes first as well: there a late look would see an old snapshot.
    """

    def __init__(self, hand: Hand, lender: Lender, result: Any, isolation: IsolationLevel | None) -> None:
        if hand.settled:
            raise AlreadySettled(
                f"job {hand.job.id} was settled by an earlier job.transaction(); a job commits once"
            )
        self._hand = hand
        self._lender = lender
        self._result = encode_result(result, hand.job.task)
        self._isolation = isolation
        self._loan: Any = None
        self._block: Any = None
        self._conn: Any = None

    # in a thread

    def __enter__(self) -> Connection[Any]:
        _check_loop(None)
        self._take_turn()
        try:
            self._loan = self._lender.store.connection()
            self._conn = self._loan.__enter__()
        except BaseException:
            self._loan, self._hand.in_block = None, False
            raise
        try:
            with named_errors():
                if self._isolation is not None:
                    self._conn.isolation_level = self._isolation
                self._block = self._conn.transaction()
                self._block.__enter__()
            if self._isolation in FENCE_FIRST:
                Store.run_in(self._conn, calls.fence(self._hand.lease))
                self._hand.fenced = True
            reach("effect.before")
        except BaseException as error:
            self._remember(error)
            self._give_back()
            raise
        return self._conn  # type: ignore[no-any-return]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._block.__exit__(kind, error, trace)
                self._check_broken(error)
        finally:
            self._give_back()

    def _commit(self) -> None:
        reach("effect.after")
        self._hand.committing = True
        try:
            self._complete()
            with named_errors():
                self._block.__exit__(None, None, None)
            self._hand.settled = True
            reach("commit.sent")
        except OUTAGE as broken:
            self._conn.close()  # if its backend lives, it lets go of the row, and the rows can answer
            self._give_back()
            self._resolve(broken)
        finally:
            self._hand.committing = False

    def _complete(self) -> None:
        try:
            self._check_deadline()
            self._check_begun()
            reach("commit.sending")
            Store.run_in(self._conn, calls.complete(self._hand.lease, self._result))
        except OUTAGE:
            raise
        except BaseException as refused:
            self._remember(refused)
            self._block.__exit__(type(refused), refused, refused.__traceback__)
            raise

    def _resolve(self, broken: Exception) -> None:
        """The connection broke in the commit: ask the rows, on a fresh one, until they can tell."""
        while True:
            try:
                outcome = self._lender.store.run(calls.outcome(self._hand.lease))
            except OUTAGE as trouble:
                self._give_up_if_late(trouble)
                time.sleep(RESOLVE_PAUSE)
            else:
                return self._judge(outcome, broken)

    def _give_back(self) -> None:
        loan, self._loan = self._loan, None
        if loan is None:
            return
        self._hand.fenced = self._hand.in_block = False
        if not (self._is_clean() and self._is_as_new()):
            self._conn.close()
        loan.__exit__(None, None, None)

    def _is_as_new(self) -> bool:
        try:
            if self._isolation is not None:
                self._conn.isolation_level = None
            if self._lender.own_session:
                self._conn.execute(AS_NEW, prepare=False)
        except psycopg.Error:
            return False
        return True

    # in the loop

    async def __aenter__(self) -> AsyncConnection[Any]:
        _check_loop(self._lender.loop)
        self._take_turn()
        try:
            self._loan = self._lender.astore.connection()
            self._conn = await self._loan.__aenter__()
        except BaseException:
            self._loan, self._hand.in_block = None, False
            raise
        try:
            with named_errors():
                if self._isolation is not None:
                    await self._conn.set_isolation_level(self._isolation)
                self._block = self._conn.transaction()
                await self._block.__aenter__()
            if self._isolation in FENCE_FIRST:
                await AsyncStore.run_in(self._conn, calls.fence(self._hand.lease))
                self._hand.fenced = True
            reach("effect.before")
        except BaseException as error:
            self._remember(error)
            await self._agive_back()
            raise
        return self._conn  # type: ignore[no-any-return]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._acommit()
            else:
                await self._block.__aexit__(kind, error, trace)
                self._check_broken(error)
        finally:
            await self._agive_back()

    async def _acommit(self) -> None:
        reach("effect.after")
        self._hand.committing = True
        try:
            await self._acomplete()
            with named_errors():
                await self._block.__aexit__(None, None, None)
            self._hand.settled = True
            reach("commit.sent")
        except OUTAGE as broken:
            await self._conn.close()
            await self._agive_back()
            await self._aresolve(broken)
        finally:
            self._hand.committing = False

    async def _acomplete(self) -> None:
        try:
            self._check_deadline()
            self._check_begun()
            reach("commit.sending")
            await AsyncStore.run_in(self._conn, calls.complete(self._hand.lease, self._result))
        except OUTAGE:
            raise
        except BaseException as refused:
            self._remember(refused)
            await self._block.__aexit__(type(refused), refused, refused.__traceback__)
            raise

    async def _aresolve(self, broken: Exception) -> None:
        while True:
            try:
                outcome = await self._lender.astore.run(calls.outcome(self._hand.lease))
            except OUTAGE as trouble:
                self._give_up_if_late(trouble)
                await asyncio.sleep(RESOLVE_PAUSE)
            else:
                return self._judge(outcome, broken)

    async def _agive_back(self) -> None:
        loan, self._loan = self._loan, None
        if loan is None:
            return
        self._hand.fenced = self._hand.in_block = False
        fit = False
        try:
            fit = self._is_clean() and await self._ais_as_new()
        finally:  # a job that is stopped just now must not keep the connection from the others
            if not fit:
                await self._conn.close()
            await loan.__aexit__(None, None, None)

    async def _ais_as_new(self) -> bool:
        try:
            if self._isolation is not None:
                await self._conn.set_isolation_level(None)
            if self._lender.own_session:
                await self._conn.execute(AS_NEW, prepare=False)
        except psycopg.Error:
            return False
        return True

    # in both

    def _is_clean(self) -> bool:
        """Whether the next handler may have this connection: nothing left open, rows as it expects them."""
        self._conn.row_factory = tuple_row
        return bool(self._conn.info.transaction_status == TransactionStatus.IDLE)

    def _take_turn(self) -> None:
        """One block at a time, in the process that holds the lease."""
        if os.getpid() != self._lender.pid:
            raise FaultlineError(
                "job.transaction() was entered in a forked child, which has its parent's connections; "
                "commit in the parent"
            )
        if self._hand.in_block:
            raise TransactionOpen(f"job {self._hand.job_id} has a job.transaction() open; a job commits once")
        self._hand.in_block = True

    def _check_begun(self) -> None:
        """Without its transaction the success would be recorded alone, whatever became of the rows."""
        closed_by_hand = self._conn.closed and not self._conn.broken
        if closed_by_hand or self._conn.info.transaction_status == TransactionStatus.IDLE:
            raise TransactionEnded(
                "the handler itself ended the transaction it was lent, by COMMIT, ROLLBACK or close(); leave "
                "that to job.transaction(), and use conn.transaction() for a savepoint"
            )

    def _check_deadline(self) -> None:
        """Do not even try with a lease that may have ended: the database would refuse, but at a cost."""
        hand = self._hand
        if hand.stopping or hand.seconds_left(self._lender.board) <= 0:
            reason: LossReason = "cancelled" if hand.stopping == "cancel" else "not_renewed"
            raise LeaseLost(hand.job_id, hand.token, None, reason)

    def _check_broken(self, error: BaseException) -> None:
        """A connection that broke inside the block is the database's failure, and is told as one."""
        if isinstance(error, psycopg.OperationalError) and self._conn.closed:
            raise ServerUnavailable(
                f"the connection broke inside job.transaction(); nothing of it was committed: {error}"
            ) from error

    def _remember(self, error: BaseException) -> None:
        if isinstance(error, LeaseLost):
            self._hand.lost = error

    def _judge(self, outcome: str, broken: Exception) -> None:
        """What the rows said of a commit whose reply was lost."""
        match outcome:
            case "succeeded":
                self._hand.settled = True
            case "running":
                raise ServerUnavailable(
                    "the connection broke before the commit; nothing was committed"
                ) from broken
            case "gone":
                raise OutcomeUnknown(
                    f"job {self._hand.job_id}: the reply to its commit was lost, and its queue keeps "
                    "no trace of it"
                ) from broken
            case _:
                lost = LeaseLost(self._hand.job_id, self._hand.token, None, "settled")
                self._remember(lost)
                raise lost from broken

    def _give_up_if_late(self, trouble: Exception) -> None:
        """Past our own deadline: hands off, and let the watchdog decide."""
        if self._hand.stopping or self._hand.seconds_left(self._lender.board) <= 0:
            raise OutcomeUnknown(
                f"job {self._hand.job_id}: the connection broke in its commit and the database stayed "
                "away until the lease ended; the ledger will tell"
            ) from trouble


async def ask_rows(hand: Hand, lender: Lender, died: Exception) -> None:
    """The process of a handler ended in its commit: the rows tell whether it got through."""
    try:
        await WorkTransaction(hand, lender, None, None)._aresolve(died)
    except ServerUnavailable:
        raise died from None


def _check_loop(ours: asyncio.AbstractEventLoop | None) -> None:
    """`with` belongs in a thread, `async with` in the worker's own loop; else loops would stop or cross."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return
    if ours is None:
        raise SyncInAsync("job.transaction() was entered by `with` in an async handler; use `async with`")
    if running is not ours:
        raise FaultlineError(
            "job.transaction() was entered by `async with` outside the worker's loop; use `with`"
        )
