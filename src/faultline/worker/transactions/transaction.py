"""job.complete: the handler's rows, the job's success and its ledger entry, together or not at all."""

import asyncio
import contextlib
import time
from types import TracebackType

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from faultline.errors import LeaseLost, ServerUnavailable
from faultline.failpoints import failpoint
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.async_connection import ConnectionCutter
from faultline.store.driver.sqlstate import named_errors
from faultline.store.lent import SyncTransaction, Transaction, lend
from faultline.store.pool import AsyncStore, Store
from faultline.store.servers.read_only import aasks_read_only, asks_read_only, refused_by_server
from faultline.store.session import OUTAGE
from faultline.worker.attempt import Attempt, AttemptPhase
from faultline.worker.call_errors import nobodys
from faultline.worker.transactions.transaction_base import (
    REFUSED,
    TransactionBase,
    TransactionPools,
    check_loop,
)

FENCE_FIRST = (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)

RESOLVE_PAUSE = 0.1

OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)

AS_NEW = b"reset session authorization; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp;"
"""What a handler left in its session, the next one must not find: a role, a search_path, a lock.

Sent behind the block without waiting: the session's next user reads the reply first.
"""

AS_NEW_INSIDE = b"set constraints all immediate; " + AS_NEW
"""The same inside the transaction: behind a pooler its session is another client's from the commit on.

Before the completion, which sets for itself what it needs; and behind what is deferred to the commit, which
may look at the handler's own settings.
"""


AS_NEW_AFTER_FAILURE = "rollback; select pg_advisory_unlock_all()"
"""All that a rollback leaves: a lock of the session. In one message, as a pooler lends the session for."""


class WorkTransaction(TransactionBase):
    """One block of a handler.

    The completing statement is its last, so the job's row is locked for a moment only.

    At REPEATABLE READ and above the fence comes first as well: there a late look would see an old snapshot.
    """

    @property
    def _reset(self) -> bytes | None:
        """What makes the session as new; behind a pooler it was another client's from the commit on."""
        return AS_NEW if self._pools.own_session else None

    # in a thread

    def __enter__(self) -> SyncTransaction:
        check_loop(None)
        self._begin()
        if self._conn.has_turned:  # told with the reply to BEGIN: another session may find the primary
            self._roll_back()
            self._give_back()
            self._begin()
        try:
            if self._isolation in FENCE_FIRST:
                Store.run_in(self._conn, calls.fence(self._attempt.lease))
                self._attempt.fenced = True
            failpoint("effect.before")
        except BaseException as error:
            self._remember(error)
            self._conn.refuses_writes |= refused_by_server(error)
            self._give_back()
            raise
        return self._lent  # type: ignore[no-any-return]

    def _begin(self) -> None:
        self._take_turn()
        try:
            self._conn = self._pools.store.borrow()
        except BaseException:
            self._leave_block()
            raise
        self._has_borrowed = True
        try:
            self._cutter = ConnectionCutter(self._conn)
            self._attempt.cut = self._cutter.cut
            with named_errors():
                self._lent, self._loan_ended = lend(self._conn), False
                if self._isolation is not None:
                    self._lent.isolation_level = self._isolation
                self._conn.wait(self._conn.prepared_calls.begin(self._isolation))
        except BaseException:
            self._give_back()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_loan()
        try:
            if error is None:
                self._commit()
            else:
                if self._cutter is not None and self._cutter.has_cut:
                    self._conn.close()  # the lease has ended, and the connection: a ROLLBACK would not arrive
                else:
                    self._roll_back()
                self._check_broken(error)
                self._check_turned(error)
        finally:
            self._give_back()

    def _check_turned(self, error: BaseException) -> None:
        """A write that its server refused is no fault of the handler; one that it forbade itself is."""
        if self._may_be_the_servers(error):
            with named_errors():
                turned = asks_read_only(self._conn)
            if turned:
                raise self._turned() from error

    def _commit(self) -> None:
        failpoint("effect.after")
        self._attempt.phase = AttemptPhase.COMMITTING
        try:
            self._complete()
            self._has_committed()
            failpoint("commit.sent")
        except OUTAGE as broken:
            self._conn.refuses_writes |= refused_by_server(broken)
            self._conn.close()  # if its backend lives, it lets go of the row, and the rows can answer
            self._give_back()
            self._resolve(broken)
        except REFUSED as refused:
            self._give_back()
            if not self._records_any():
                raise self._cannot_record(refused) from refused
            raise
        finally:
            self._end_commit()

    def _records_any(self) -> bool:
        """Whether successes can be recorded, over another connection, with nothing of the handler's in it."""
        try:
            self._pools.store.run(calls.complete(nobodys(), None))
        except LeaseLost:
            return True
        except REFUSED:
            return False
        return True

    def _complete(self) -> None:
        try:
            self._check_deadline()
            self._check_begun()
            failpoint("commit.sending")
            if not self._pools.own_session:
                with named_errors():
                    self._conn.execute(AS_NEW_INSIDE, prepare=False)
            self._take_result()
            with named_errors(), self._conn.lock:
                self._conn.wait(self._conn.prepared_calls.commit(self._last_call()))
        except OUTAGE:
            raise
        except BaseException as refused:
            self._remember(refused)
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Best effort: a connection that is not idle afterwards is closed."""
        if self._conn.info.transaction_status not in OPEN:
            return
        with contextlib.suppress(psycopg.Error):
            if not self._pools.own_session:
                self._conn.execute(AS_NEW_AFTER_FAILURE, prepare=False)
            self._conn.rollback()

    def _resolve(self, broken: Exception) -> None:
        """The connection broke in the commit: ask the rows, on a fresh one, until they can tell."""
        while True:
            try:
                outcome = self._pools.store.run(calls.outcome(self._attempt.lease))
            except OUTAGE as trouble:
                self._give_up_if_late(trouble)
                time.sleep(RESOLVE_PAUSE)
            else:
                return self._judge(outcome, broken)

    def _give_back(self) -> None:
        self._end_loan()
        if not self._has_borrowed:
            return
        self._has_borrowed = False
        self._leave_block()
        is_clean = self._is_clean()
        if not is_clean:
            self._conn.close()
        if self._cutter is not None:
            self._cutter.close()
        self._pools.store.give_back(self._conn, self._reset if is_clean else None)

    # in the loop

    async def __aenter__(self) -> Transaction:
        check_loop(self._pools.loop)
        await self._abegin()
        if self._conn.has_turned:
            await self._aroll_back()
            await self._agive_back()
            await self._abegin()
        try:
            if self._isolation in FENCE_FIRST:
                await AsyncStore.run_in(self._conn, calls.fence(self._attempt.lease))
                self._attempt.fenced = True
            failpoint("effect.before")
        except BaseException as error:
            self._remember(error)
            self._conn.refuses_writes |= refused_by_server(error)
            await self._agive_back()
            raise
        return self._lent  # type: ignore[no-any-return]

    async def _abegin(self) -> None:
        self._take_turn()
        while not await self._abegin_on_one():
            pass

    async def _abegin_on_one(self) -> bool:
        """False if the session could not be made as new: it is closed, and another one is tried."""
        try:
            self._conn = await self._pools.astore.borrow(resets=True)
        except BaseException:
            self._leave_block()
            raise
        self._has_borrowed = True
        self._attempt.cut = self._hang_up
        reset = self._conn.take_reset()
        try:
            with named_errors():
                self._lent, self._loan_ended = lend(self._conn), False
                if self._isolation is not None:
                    await self._lent.set_isolation_level(self._isolation)
                await self._conn.wait(self._conn.prepared_calls.begin(self._isolation, reset))
        except BaseException as error:
            if reset is not None:
                await self._aclose()
            await self._agive_back()
            if reset is None or not isinstance(error, Exception):
                raise
            self._take_turn()
            return False
        return True

    def _hang_up(self) -> None:
        """Here and now, with the handler's own statement that may be under way."""
        if self._lent is not None:
            self._lent.fail_all()
        self._conn.hang_up()

    async def _aclose(self) -> None:
        if self._lent is not None:
            self._lent.fail_all()
        await self._conn.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_loan()
        try:
            if error is None:
                await self._acommit()
            else:
                if not self._conn.closed:  # else the lease has ended, and the line with it
                    await self._aroll_back()
                self._check_broken(error)
                await self._acheck_turned(error)
        finally:
            await self._agive_back()

    async def _acheck_turned(self, error: BaseException) -> None:
        if self._may_be_the_servers(error):
            with named_errors():
                turned = await aasks_read_only(self._conn)
            if turned:
                raise self._turned() from error

    async def _acommit(self) -> None:
        failpoint("effect.after")
        self._attempt.phase = AttemptPhase.COMMITTING
        try:
            await self._acomplete()
            self._has_committed()
            failpoint("commit.sent")
        except OUTAGE as broken:
            self._conn.refuses_writes |= refused_by_server(broken)
            await self._aclose()
            await self._agive_back()
            await self._aresolve(broken)
        except REFUSED as refused:
            await self._agive_back()
            if not await self._arecords_any():
                raise self._cannot_record(refused) from refused
            raise
        finally:
            self._end_commit()

    async def _arecords_any(self) -> bool:
        try:
            await self._pools.astore.run(calls.complete(nobodys(), None))
        except LeaseLost:
            return True
        except REFUSED:
            return False
        return True

    async def _acomplete(self) -> None:
        try:
            self._check_deadline()
            self._check_begun()
            failpoint("commit.sending")
            if not self._pools.own_session:
                with named_errors():
                    await self._conn.execute(AS_NEW_INSIDE, prepare=False)
            self._take_result()
            with named_errors():
                async with self._conn.lock:
                    await self._conn.wait(self._conn.prepared_calls.commit(self._last_call()))
        except OUTAGE:
            raise
        except BaseException as refused:
            self._remember(refused)
            await self._aroll_back()
            raise

    async def _aroll_back(self) -> None:
        if self._conn.info.transaction_status not in OPEN:
            return
        with contextlib.suppress(psycopg.Error):
            if not self._pools.own_session:
                await self._conn.execute(AS_NEW_AFTER_FAILURE, prepare=False)
            await self._conn.rollback()

    async def _aresolve(self, broken: Exception) -> None:
        while True:
            try:
                outcome = await self._pools.astore.run(calls.outcome(self._attempt.lease))
            except OUTAGE as trouble:
                self._give_up_if_late(trouble)
                await asyncio.sleep(RESOLVE_PAUSE)
            else:
                return self._judge(outcome, broken)

    async def _agive_back(self) -> None:
        self._end_loan()
        if not self._has_borrowed:
            return
        self._has_borrowed = False
        self._leave_block()
        is_clean = self._is_clean()
        try:
            if not is_clean:
                await self._aclose()
        finally:  # a job that is stopped just now must not keep the connection from the others
            await self._pools.astore.give_back(self._conn, self._reset if is_clean else None)


class FencedTransaction(WorkTransaction):
    """`job.fenced()`: the rows commit only while the lease is ours, and the job goes on."""

    def _last_call(self) -> Call[None]:
        return calls.fence(self._attempt.lease)

    def _has_committed(self) -> None:
        self._attempt.phase = self._before

    def _resolve(self, broken: Exception) -> None:
        raise self._lost_reply() from broken

    async def _aresolve(self, broken: Exception) -> None:
        raise self._lost_reply() from broken

    def _lost_reply(self) -> ServerUnavailable:
        """No row tells of a fence: the next attempt runs the block again."""
        return ServerUnavailable(
            "the connection broke in the commit of job.fenced(): its rows were committed, or none of them"
        )


async def ask_rows(attempt: Attempt, transaction_pools: TransactionPools, died: Exception) -> None:
    """The process of a handler ended in its commit: the rows tell whether it got through."""
    try:
        await WorkTransaction(attempt, transaction_pools, None, None)._aresolve(died)
    except ServerUnavailable:
        raise died from None
