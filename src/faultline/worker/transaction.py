"""job.transaction: the handler's rows, the job's success and its ledger entry, together or not at all."""

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection, IsolationLevel

from faultline.errors import LeaseLost, ServerUnavailable
from faultline.failpoints import reach
from faultline.store import calls
from faultline.store.faults import named_errors
from faultline.store.lean import Cutter
from faultline.store.line import OUTAGE
from faultline.store.run import AsyncStore, Store
from faultline.store.turned import aasks_read_only, asks_read_only, refused_by_server
from faultline.worker.block import REFUSED, Block, Lender, check_loop
from faultline.worker.hand import Hand
from faultline.worker.trouble import nobodys

FENCE_FIRST = (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE)

RESOLVE_PAUSE = 0.1

AS_NEW = "reset session authorization; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp;"
"""What a handler left in its session, the next one must not find: a role, a search_path, a lock."""

AS_NEW_INSIDE = f"set constraints all immediate; {AS_NEW}"
"""The same inside the transaction: behind a pooler its session is another client's from the commit on.

Before the completion, which sets for itself what it needs; and behind what is deferred to the commit, which
may look at the handler's own settings.
"""


AS_NEW_AFTER_FAILURE = "rollback; select pg_advisory_unlock_all()"
"""All that a rollback leaves: a lock of the session. In one message, as a pooler lends the session for."""


class WorkTransaction(Block):
    """One block of a handler.

    The completing statement is its last, so the job's row is locked for a moment only.

    At REPEATABLE READ and above the fence comes first as well: there a late look would see an old snapshot.
    """

    # in a thread

    def __enter__(self) -> Connection[Any]:
        check_loop(None)
        self._begin()
        if self._conn.has_turned:  # told with the reply to BEGIN: another session may find the primary
            self._block.__exit__(None, None, None)
            self._give_back()
            self._begin()
        try:
            if self._isolation in FENCE_FIRST:
                Store.run_in(self._conn, calls.fence(self._hand.lease))
                self._hand.fenced = True
            reach("effect.before")
        except BaseException as error:
            self._remember(error)
            self._conn.refuses_writes |= refused_by_server(error)
            self._give_back()
            raise
        return self._conn  # type: ignore[no-any-return]

    def _begin(self) -> None:
        self._take_turn()
        try:
            self._loan = self._lender.store.connection()
            self._conn = self._loan.__enter__()
        except BaseException:
            self._loan, self._hand.in_block = None, False
            raise
        try:
            self._cutter = Cutter(self._conn)
            self._hand.cut = self._cutter.cut
            with named_errors():
                if self._isolation is not None:
                    self._conn.isolation_level = self._isolation
                self._block = self._conn.transaction()
                self._block.__enter__()
        except BaseException:
            self._give_back()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
            else:
                if self._cutter is not None and self._cutter.has_cut:
                    self._conn.close()  # the lease has ended, and the line with it: nobody hears a ROLLBACK
                else:
                    self._roll_back(kind, error, trace)
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
        reach("effect.after")
        self._hand.committing = True
        try:
            self._complete()
            with named_errors():
                self._block.__exit__(None, None, None)
            self._hand.settled = True
            reach("commit.sent")
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
            self._hand.committing = False

    def _records_any(self) -> bool:
        """Whether successes can be recorded, over another connection, with nothing of the handler's in it."""
        try:
            self._lender.store.run(calls.complete(nobodys(), None))
        except LeaseLost:
            return True
        except REFUSED:
            return False
        return True

    def _complete(self) -> None:
        try:
            self._check_deadline()
            self._check_begun()
            reach("commit.sending")
            if not self._lender.own_session:
                with named_errors():
                    self._conn.execute(AS_NEW_INSIDE, prepare=False)
            Store.run_in(self._conn, calls.complete(self._hand.lease, self._result))
        except OUTAGE:
            raise
        except BaseException as refused:
            self._remember(refused)
            self._roll_back(type(refused), refused, refused.__traceback__)
            raise

    def _roll_back(
        self, kind: type[BaseException] | None, error: BaseException, trace: TracebackType | None
    ) -> None:
        if not self._lender.own_session:
            with contextlib.suppress(psycopg.Error):
                self._conn.execute(AS_NEW_AFTER_FAILURE, prepare=False)
        self._block.__exit__(kind, error, trace)

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
        self._hand.cut = None
        if not (self._is_clean() and self._is_as_new()):
            self._conn.close()
        if self._cutter is not None:
            self._cutter.close()
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
        check_loop(self._lender.loop)
        await self._abegin()
        if self._conn.has_turned:
            await self._block.__aexit__(None, None, None)
            await self._agive_back()
            await self._abegin()
        try:
            if self._isolation in FENCE_FIRST:
                await AsyncStore.run_in(self._conn, calls.fence(self._hand.lease))
                self._hand.fenced = True
            reach("effect.before")
        except BaseException as error:
            self._remember(error)
            self._conn.refuses_writes |= refused_by_server(error)
            await self._agive_back()
            raise
        return self._conn  # type: ignore[no-any-return]

    async def _abegin(self) -> None:
        self._take_turn()
        try:
            self._loan = self._lender.astore.connection()
            self._conn = await self._loan.__aenter__()
            self._hand.cut = self._conn.hang_up
        except BaseException:
            self._loan, self._hand.in_block = None, False
            raise
        try:
            with named_errors():
                if self._isolation is not None:
                    await self._conn.set_isolation_level(self._isolation)
                self._block = self._conn.transaction()
                await self._block.__aenter__()
        except BaseException:
            await self._agive_back()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._acommit()
            else:
                if not self._conn.closed:  # else the lease has ended, and the line with it
                    await self._aroll_back(kind, error, trace)
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
        reach("effect.after")
        self._hand.committing = True
        try:
            await self._acomplete()
            with named_errors():
                await self._block.__aexit__(None, None, None)
            self._hand.settled = True
            reach("commit.sent")
        except OUTAGE as broken:
            self._conn.refuses_writes |= refused_by_server(broken)
            await self._conn.close()
            await self._agive_back()
            await self._aresolve(broken)
        except REFUSED as refused:
            await self._agive_back()
            if not await self._arecords_any():
                raise self._cannot_record(refused) from refused
            raise
        finally:
            self._hand.committing = False

    async def _arecords_any(self) -> bool:
        try:
            await self._lender.astore.run(calls.complete(nobodys(), None))
        except LeaseLost:
            return True
        except REFUSED:
            return False
        return True

    async def _acomplete(self) -> None:
        try:
            self._check_deadline()
            self._check_begun()
            reach("commit.sending")
            if not self._lender.own_session:
                with named_errors():
                    await self._conn.execute(AS_NEW_INSIDE, prepare=False)
            await AsyncStore.run_in(self._conn, calls.complete(self._hand.lease, self._result))
        except OUTAGE:
            raise
        except BaseException as refused:
            self._remember(refused)
            await self._aroll_back(type(refused), refused, refused.__traceback__)
            raise

    async def _aroll_back(
        self, kind: type[BaseException] | None, error: BaseException, trace: TracebackType | None
    ) -> None:
        if not self._lender.own_session:
            with contextlib.suppress(psycopg.Error):
                await self._conn.execute(AS_NEW_AFTER_FAILURE, prepare=False)
        await self._block.__aexit__(kind, error, trace)

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
        self._hand.cut = None
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


async def ask_rows(hand: Hand, lender: Lender, died: Exception) -> None:
    """The process of a handler ended in its commit: the rows tell whether it got through."""
    try:
        await WorkTransaction(hand, lender, None, None)._aresolve(died)
    except ServerUnavailable:
        raise died from None
