"""The settler: records successes in one call for 250 jobs or 3 ms, failures together, the rest one by one."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from faultline.errors import CannotConnect, FaultlineError, LeaseLost, OutcomeUnknown
from faultline.failpoints import failpoint
from faultline.outcome import Done, Failed, Outcome, Unserved
from faultline.store.rows import SettleRefusal
from faultline.store.session import OUTAGE
from faultline.telemetry import emit, tracing
from faultline.worker.attempt import COMMITTED, Attempt, Offer
from faultline.worker.backend import Backend
from faultline.worker.call_errors import (
    NO_ROW_TELLS,
    can_be_mended,
    is_of_a_bound,
    is_of_all,
    nobodys,
)
from faultline.worker.execution.attempt_log import AttemptLog
from faultline.worker.execution.outcomes import failed_by
from faultline.worker.outage import Outage
from faultline.worker.settlement.offers import judged
from faultline.worker.settlement.settle import (
    as_text,
    ended_as,
    is_given_back,
    is_recorded,
    is_the_handlers,
)
from faultline.worker.state import WorkerState

log = logging.getLogger("faultline.worker")

BUSY_PAUSE = 0.005
BUSY_PAUSE_MAX = 0.05
"""A locked row is tried again after the first of these pauses, in a later batch: it stalls no other row.

Mostly that was another worker's claim, which passes over it in some milliseconds. From then on twice as long.
"""

BATCHES_MAX = 2
"""Batches of successes under way at once: one in the server, and one that it goes on with."""

FAILED_MAX = 100
"""Failures recorded in one call: each brings a traceback, and others wait for their turn on this line."""

ONE_WAIT = 1.0
ONE_WAIT_MAX = 60.0
"""How long one single settling may wait for its row before the others get their turn; doubled at each try."""

PUT_OFF_FIRST = 0.05
PUT_OFF_MAX = 5.0
"""Seconds after which what the database refused to record is sent again: twice as long each time, and never
over a third of a lease."""

TRY_ONE_AFTER = 10.0
"""While outcomes are refused claims are held back: in so many seconds one job is tried."""

NO_PAUSE = timedelta(0)

WHY_HELD_BACK = "outcomes"

Said = tuple[Attempt, Outcome | LeaseLost | None, int]
"""What is to be recorded singly, and how often it was sent before without an answer; None: an afterword."""


@dataclass
class Unrecorded:
    """What the database refuses to record, for a reason that is not the job's."""

    since: float
    tries: int = 0
    unanswered: bool = False
    """A reply was lost before: it may be recorded."""


class Settler:
    """Batches of successes go beside the rest: a slow failure holds up no success."""

    def __init__(self, state: WorkerState, backend: Backend, outage: Outage, worker: int) -> None:
        self.state = state
        self.backend = backend
        self.outage = outage
        self.worker = worker
        self.done: list[Attempt] = []
        self.failed: list[Attempt] = []
        self.rest: deque[Said] = deque()
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        self._rest = asyncio.Event()
        self._next = asyncio.Lock()
        self._at_work = 0
        self._batch_size = state.config.settle_batch
        self.unrecorded: dict[Attempt, Unrecorded] = {}
        self._log = AttemptLog(worker)

    def take(self, attempt: Attempt, outcome: Outcome | LeaseLost | None) -> None:
        """An attempt has ended. None: it is no longer ours, or job.complete has already said it.

        LeaseLost: the fence refused it inside the handler, which is still to be recorded.
        """
        if attempt.offer is not None and isinstance(outcome, Outcome):
            self._take_singly(attempt, outcome)  # the rows are asked first
        elif type(outcome) is Done:
            attempt.outcome = outcome
            self.done.append(attempt)
            size = len(self.done)
            if size == 1:
                self._some.set()
            if size == self._batch_size:
                self._enough.set()
        elif type(outcome) is Failed:
            attempt.outcome = outcome
            self.failed.append(attempt)
            self._rest.set()
        elif outcome is None and attempt.afterword is None:
            self.state.drop(attempt)
        else:
            self._take_singly(attempt, outcome)

    def _take_singly(self, attempt: Attempt, outcome: Outcome | LeaseLost | None, tries: int = 0) -> None:
        self.rest.append((attempt, outcome, tries))
        self._rest.set()

    def take_late(self, attempt: Attempt, lost: LeaseLost) -> None:
        """A thread we had let go of was refused its commit: the lease is not ours any more, that is."""
        self._take_singly(attempt, lost)

    @property
    def idle(self) -> bool:
        return not (self.done or self.failed or self.rest or self._at_work)

    def runs(self) -> list[Coroutine[Any, Any, None]]:
        """What has to be run for it, all at once."""
        return [*(self.run_batches() for _ in range(BATCHES_MAX)), self.run_rest()]

    async def run_batches(self) -> None:
        """Record successes until cancelled. Run by several: while one is recorded, the next is sent."""
        while True:
            async with self._next:
                batch = await self._batch()
            await self._settle_many(batch)
            self._at_work -= 1

    async def _batch(self) -> list[Attempt]:
        """Wait until there are enough of them, or the first has waited 3 ms."""
        await self._some.wait()
        if len(self.done) < self._batch_size:
            self._enough.clear()
            wait = self.state.config.settle_every.total_seconds()
            alarm = asyncio.get_running_loop().call_later(wait, self._enough.set)
            await self._enough.wait()
            alarm.cancel()
        batch, self.done = self.done, []
        self._some.clear()
        self._at_work += 1
        return batch

    async def run_rest(self) -> None:
        """Record what is not a plain success, until cancelled: failures together, the rest singly."""
        while True:
            await self._rest.wait()
            self._rest.clear()
            while self.failed or self.rest:
                self._at_work += 1
                if self.failed:
                    batch, self.failed = self.failed[:FAILED_MAX], self.failed[FAILED_MAX:]
                    await self._settle_many(batch)
                else:
                    await self._settle_one(*self.rest.popleft())
                self._at_work -= 1

    async def _settle_many(self, batch: list[Attempt]) -> None:
        """One call for all of them; who is not answered for got through."""
        began = 0 if tracing.tracer is None else time.time_ns()
        try:
            failpoint("settle.sending")
            answers = await self.backend.settle_many(batch)
        except Exception as trouble:  # rows will tell which of them got through, one by one
            self._divide(batch, trouble)
            return
        self.outage.over()
        self._recorded(batch)
        if tracing.tracer is not None:
            tracing.settled([attempt.span for attempt in batch], began)
        failpoint("acked")
        self.state.drop(*(self._got_through(batch, answers) if answers else batch))

    def _divide(self, batch: list[Attempt], trouble: Exception) -> None:
        """A batch that was not recorded as one: each of it by itself, unless all would meet the same."""
        if isinstance(trouble, OUTAGE):
            self.outage.met(trouble)
        answered = isinstance(trouble, FaultlineError | psycopg.Error) and not isinstance(trouble, OUTAGE)
        unsent = answered or isinstance(trouble, CannotConnect)
        for attempt in batch:
            assert attempt.outcome is not None
            if is_of_all(trouble):
                self._put_off(attempt, attempt.outcome, trouble)
            else:
                self._take_singly(attempt, attempt.outcome, tries=0 if unsent else 1)

    def _put_off(self, attempt: Attempt, outcome: Outcome | LeaseLost, trouble: Exception) -> None:
        """Keep an outcome, and its lease, until the database takes it; meanwhile claim little."""
        kept = self.unrecorded.setdefault(attempt, Unrecorded(time.monotonic()))
        kept.tries += 1
        self.outage.met(trouble)
        lease = self.state.config.lease_for.total_seconds()
        pause = min(PUT_OFF_FIRST * 2 ** min(kept.tries, 10), PUT_OFF_MAX, lease / 3)
        self.state.hold_back(WHY_HELD_BACK, TRY_ONE_AFTER)
        self._at_work += 1
        asyncio.get_running_loop().call_later(pause, self._send_again, attempt, outcome)

    def _send_again(self, attempt: Attempt, outcome: Outcome | LeaseLost) -> None:
        self._at_work -= 1
        kept = self.unrecorded.get(attempt)
        if kept is not None and kept.unanswered:
            self._take_singly(attempt, outcome, tries=1)
        elif isinstance(outcome, LeaseLost):
            self._take_singly(attempt, outcome)
        else:
            self.take(attempt, outcome)

    def _recorded(self, attempts: Iterable[Attempt]) -> None:
        """The database takes outcomes; if it did not before, that is over."""
        if self.unrecorded:
            for attempt in attempts:
                self.unrecorded.pop(attempt, None)
        self.state.hold_back_no_more(WHY_HELD_BACK)

    def _got_through(self, batch: list[Attempt], answers: list[SettleRefusal]) -> list[Attempt]:
        """Those whose lease has ended by this call; who is busy comes again in a later batch."""
        told = {(answer.job_id, answer.token): answer for answer in answers}
        ended = []
        for attempt in batch:
            answer = told.get((attempt.job_id, attempt.token))
            if answer is not None and answer.answer == "busy":
                self._wait_for_row(attempt)
                continue
            if answer is not None and answer.answer == "alone":  # a server's word: not with the others
                assert attempt.outcome is not None
                self._take_singly(attempt, attempt.outcome, tries=1 if answer.reason == "unknown" else 0)
                continue
            if answer is not None:
                self._report_refused(attempt, answer.reason or "gone", answer.current_token)
            ended.append(attempt)
        return ended

    def _wait_for_row(self, attempt: Attempt) -> None:
        self._at_work += 1
        pause = min(BUSY_PAUSE * 2**attempt.met_busy, BUSY_PAUSE_MAX)
        attempt.met_busy = min(attempt.met_busy + 1, 10)
        asyncio.get_running_loop().call_later(pause, self._try_again, attempt)

    def _try_again(self, attempt: Attempt) -> None:
        self._at_work -= 1
        self.take(attempt, attempt.outcome)

    async def _settle_one(self, attempt: Attempt, outcome: Outcome | LeaseLost | None, tries: int) -> None:
        """Record one outcome; no error of it may end the coroutine that records the others."""
        if outcome is None:
            await self._note_afterword(attempt)
            return
        if attempt.offer is not None and not isinstance(outcome, LeaseLost):
            await self._judge_offer(attempt, attempt.offer, outcome, tries)
            return
        try:
            async with asyncio.timeout(min(ONE_WAIT * 2**tries, ONE_WAIT_MAX)):
                await self._send_outcome(attempt, outcome, tries)
        except TimeoutError:
            self._take_singly(attempt, outcome, tries + 1)
            return
        except OutcomeUnknown as unknown:
            attempt.ended_as = "unknown"
            log.error("%s", unknown)
        except Exception as error:
            if isinstance(outcome, Outcome) and await self._is_the_handlers(outcome, error):
                self._take_singly(attempt, failed_by(error))
                return
            if not await self._is_hopeless(attempt, outcome, error):
                self._put_off(attempt, outcome, error)
                return
            attempt.ended_as = "unsettled"
            log.exception(
                "job %d could not be settled; its lease runs out, and others try it", attempt.job.id
            )
        self._recorded([attempt])
        if isinstance(outcome, Outcome):
            attempt.outcome = outcome
        self.state.drop(attempt)

    async def _judge_offer(self, attempt: Attempt, offer: Offer, outcome: Outcome, tries: int) -> None:
        """Ask the rows what became of the handler's own transaction, and record what is left to record."""
        try:
            async with asyncio.timeout(min(ONE_WAIT * 2**tries, ONE_WAIT_MAX)):
                entry = await self.outage.outlast(lambda: self.backend.outcome_in(attempt.lease))
        except TimeoutError:
            self._take_singly(attempt, outcome, tries + 1)
            return
        except Exception as error:
            self._put_off(attempt, outcome, error)
            return
        emit(
            "commit_resolved", logging.DEBUG, job_id=attempt.job_id, token=attempt.token,
            task=attempt.job.task, answer=entry,
        )  # fmt: skip
        attempt.offer = None
        left = judged(attempt, offer, entry, outcome)
        self._recorded([attempt])
        if left is not None and left is not outcome:
            self._log.finished(attempt, left)
        self.take(attempt, left)

    async def _note_afterword(self, attempt: Attempt) -> None:
        """Keep what a handler raised after its success beside the success; that is lost in an outage."""
        job, said = attempt.job, attempt.afterword or ""
        log.warning(
            "job %d (%s) raised after it was completed; its success stands: %s",
            job.id, job.task, said,
        )  # fmt: skip
        try:
            async with asyncio.timeout(ONE_WAIT):
                await self.backend.note_error(attempt.lease, as_text(said, None))
        except Exception as error:
            log.warning("job %d: that could not be kept in the ledger: %s", job.id, error)
        self.state.drop(attempt)

    async def _is_the_handlers(self, outcome: Outcome, error: Exception) -> bool:
        """Whether it is refused for what the handler gave.

        A trigger, or the row itself, may answer alike: then a lease that does not exist is not refused.
        """
        if not is_the_handlers(outcome, error) or is_of_a_bound(error):
            return is_the_handlers(outcome, error)
        try:
            await self.backend.settle(nobodys(), outcome)
        except Exception as again:
            return is_the_handlers(outcome, again)
        return False

    async def _is_hopeless(self, attempt: Attempt, outcome: Outcome | LeaseLost, error: Exception) -> bool:
        """Whether it is this job alone that cannot be settled, for a lease by now.

        A pacemaker that went on beating would keep it from all others. What every call meets is waited out.
        """
        kept = self.unrecorded.get(attempt)
        if not can_be_mended(error):
            return True
        if kept is None or is_of_all(error) or time.monotonic() - kept.since < attempt.lease_for:
            return False
        if isinstance(outcome, LeaseLost):
            return True  # there is no lease to keep; the refusal itself stands
        try:
            await self.backend.settle(nobodys(), outcome)
        except LeaseLost:
            return True  # the verb works, and refuses what it should
        except Exception:
            return False
        return False

    async def _send_outcome(self, attempt: Attempt, outcome: Outcome | LeaseLost, tries: int) -> None:
        """Send one outcome.

        After a break in the middle, rows tell whether it was recorded, before it is sent again.
        """
        if isinstance(outcome, LeaseLost):
            await self._record_refusal(attempt, outcome)
            return
        unanswered, began = tries > 0, 0 if tracing.tracer is None else time.time_ns()

        async def send() -> None:
            nonlocal unanswered
            if unanswered and await self._is_told(attempt, outcome):
                return
            unanswered = False
            failpoint("release.sending" if is_given_back(outcome) else "settle_one.sending")
            final = await self._left_to_others(attempt, outcome) if isinstance(outcome, Unserved) else outcome
            unanswered = True
            try:
                attempt.ended_as = ended_as(final, await self.backend.settle(attempt.lease, final))
            except Exception as error:
                # Any other says that it was not recorded, except a server's word for what only its log tells.
                unanswered = isinstance(error, OUTAGE) or type(error) is FaultlineError
                raise

        try:
            await self.outage.outlast(send)
            self._log.recorded(attempt, outcome)
            if tracing.tracer is not None:
                tracing.settled([attempt.span], began)
            failpoint("release.sent" if is_given_back(outcome) else "settled")
        except LeaseLost as lost:
            await self._record_refusal(attempt, lost)
        except Exception:
            if unanswered:
                self.unrecorded.setdefault(attempt, Unrecorded(time.monotonic())).unanswered = True
            raise

    async def _left_to_others(self, attempt: Attempt, outcome: Unserved) -> Unserved:
        """Without a delay where other workers serve the queue: they may know the task, and it has waited."""
        if not await self.backend.others_serve(attempt.job.queue):
            return outcome
        pause = NO_PAUSE if self.state.unfit.leave(attempt.job.task) else outcome.delay
        return Unserved(pause)

    async def _is_told(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Ask the rows about a settling whose reply was lost: True when there is nothing more to send."""
        entry, job = await self.backend.outcome(attempt.lease), attempt.job
        emit(
            "commit_resolved", logging.DEBUG, job_id=job.id, token=job.token, task=job.task, answer=entry,
        )  # fmt: skip
        if entry == "gone":
            raise OutcomeUnknown(
                f"job {attempt.job.id}: the reply to its settling was lost, and {NO_ROW_TELLS}"
            )
        if is_recorded(outcome, entry):
            attempt.ended_as = ended_as(outcome, entry)
            return True
        # Any other entry is of another lease: sending it again has the fence say so, with its facts.
        return False

    async def _record_refusal(self, attempt: Attempt, lost: LeaseLost) -> None:
        if attempt.phase is COMMITTED or (lost.reason == "settled" and await self._committed(attempt)):
            return  # its own transaction was first, while we spoke for a handler that was to stop
        reason, current_token = await self.outage.outlast(lambda: self.backend.record_refusal(attempt.lease))
        self._report_refused(attempt, reason, current_token)

    async def _committed(self, attempt: Attempt) -> bool:
        entry = await self.outage.outlast(lambda: self.backend.outcome(attempt.lease))
        return entry == "succeeded"

    def _report_refused(self, attempt: Attempt, reason: str, current_token: int | None) -> None:
        attempt.job._lose()
        attempt.ended_as = "refused"
        emit(
            "stale_write_blocked", logging.WARNING, job_id=attempt.job.id, token=attempt.job.token,
            worker=self.worker, task=attempt.job.task, queue=attempt.job.queue, stale_token=attempt.job.token,
            current_token=current_token, reason=reason,
        )  # fmt: skip
        self.state.figures.refused(attempt, reason)
        tracing.refused(attempt.job, attempt.span, reason, current_token)
