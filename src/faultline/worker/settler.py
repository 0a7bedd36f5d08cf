"""The settler: records successes in one call for 250 jobs or 3 ms, failures together, the rest one by one."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from faultline.errors import CannotConnect, FaultlineError, LeaseLost, OutcomeUnknown
from faultline.failpoints import reach
from faultline.outcome import Crashed, Dead, Done, Failed, Outcome, Released, Snooze
from faultline.store import calls
from faultline.store.line import OUTAGE
from faultline.store.rows import Answer
from faultline.telemetry import describe_error, emit, tracing
from faultline.telemetry.events import tell
from faultline.worker.doors import Carrier
from faultline.worker.hand import Hand
from faultline.worker.judge import unknown_for_long
from faultline.worker.outage import Outage
from faultline.worker.settle import ended_as, is_recorded, settle, settle_many
from faultline.worker.shelf import Shelf
from faultline.worker.trouble import (
    NO_ROW_TELLS,
    can_be_mended,
    is_of_a_bound,
    is_of_all,
    is_the_handlers,
    nobodys,
)

log = logging.getLogger("faultline.worker")

BUSY_PAUSE = 0.005
BUSY_PAUSE_MAX = 0.05
"""A row that somebody has locked is tried again after the first, in a later batch: it stalls nobody.

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

Said = tuple[Hand, Outcome | LeaseLost, int]
"""What is to be recorded singly, and how often it was sent before without an answer."""


@dataclass
class Unrecorded:
    """What the database refuses to record, for a reason that is not the job's."""

    since: float
    tries: int = 0
    unanswered: bool = False
    """A reply was lost before: it may be recorded."""


class Settler:
    """Two lines: one for batches of successes, one for the rest: a slow failure holds up no success."""

    def __init__(
        self, shelf: Shelf, batch_line: Carrier, single_line: Carrier, outage: Outage, worker: int
    ) -> None:
        self.shelf = shelf
        self.batch_line = batch_line
        self.single_line = single_line
        self.outage = outage
        self.worker = worker
        self.done: list[Hand] = []
        self.failed: list[Hand] = []
        self.rest: deque[Said] = deque()
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        self._rest = asyncio.Event()
        self._next = asyncio.Lock()
        self._at_work = 0
        self._batch_size = shelf.config.settle_batch
        self.unrecorded: dict[Hand, Unrecorded] = {}

    async def warm_up(self) -> None:
        """Connect, and have the server make its plans, before there is anything to record.

        It takes longer than recording a thousand jobs. What goes wrong now goes wrong again when it matters,
        and is told then.
        """
        for line, call in (
            (self.batch_line, calls.complete_many([], [])), (self.single_line, calls.fail_many([], [], [])),
        ):  # fmt: skip
            with contextlib.suppress(Exception):
                await line.run(call)

    def take(self, hand: Hand, outcome: Outcome | LeaseLost | None) -> None:
        """An attempt has ended. None: it is no longer ours, or job.transaction has already said it.

        LeaseLost: the fence refused it inside the handler, which is still to be recorded.
        """
        if type(outcome) is Done:
            hand.outcome = outcome
            self.done.append(hand)
            size = len(self.done)
            if size == 1:
                self._some.set()
            if size == self._batch_size:
                self._enough.set()
        elif type(outcome) is Failed:
            hand.outcome = outcome
            self.failed.append(hand)
            self._rest.set()
        elif outcome is None:
            self.shelf.drop(hand)
        else:
            self._take_singly(hand, outcome)

    def _take_singly(self, hand: Hand, outcome: Outcome | LeaseLost, tries: int = 0) -> None:
        self.rest.append((hand, outcome, tries))
        self._rest.set()

    def take_late(self, hand: Hand, lost: LeaseLost) -> None:
        """A thread we had let go of was refused its commit: the lease is not ours any more, that is."""
        self._take_singly(hand, lost)

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
            await self._settle_many(batch, self.batch_line)
            self._at_work -= 1

    async def _batch(self) -> list[Hand]:
        """Wait until there are enough of them, or the first has waited 3 ms."""
        await self._some.wait()
        if len(self.done) < self._batch_size:
            self._enough.clear()
            wait = self.shelf.config.settle_every.total_seconds()
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
                    await self._settle_many(batch, self.single_line)
                else:
                    await self._settle_one(*self.rest.popleft())
                self._at_work -= 1

    async def _settle_many(self, batch: list[Hand], line: Carrier) -> None:
        """One call for all of them; who is not answered for got through."""
        began = 0 if tracing.tracer is None else time.time_ns()
        try:
            reach("settle.sending")
            answers = await line.run_in_line(settle_many(batch, self.worker))
        except Exception as trouble:  # rows will tell which of them got through, one by one
            self._divide(batch, trouble)
            return
        self.outage.over()
        self._recorded(batch)
        if tracing.tracer is not None:
            tracing.settled([hand.span for hand in batch], began)
        reach("acked")
        self.shelf.drop(*(self._got_through(batch, answers) if answers else batch))

    def _divide(self, batch: list[Hand], trouble: Exception) -> None:
        """A batch that was not recorded as one: each of it by itself, unless all would meet the same."""
        if isinstance(trouble, OUTAGE):
            self.outage.met(trouble)
        answered = isinstance(trouble, FaultlineError | psycopg.Error) and not isinstance(trouble, OUTAGE)
        unsent = answered or isinstance(trouble, CannotConnect)
        for hand in batch:
            assert hand.outcome is not None
            if is_of_all(trouble):
                self._put_off(hand, hand.outcome, trouble)
            else:
                self._take_singly(hand, hand.outcome, tries=0 if unsent else 1)

    def _put_off(self, hand: Hand, outcome: Outcome | LeaseLost, trouble: Exception) -> None:
        """Keep an outcome, and its lease, until the database takes it; meanwhile claim little."""
        kept = self.unrecorded.setdefault(hand, Unrecorded(time.monotonic()))
        kept.tries += 1
        self.outage.met(trouble)
        lease = self.shelf.config.lease_for.total_seconds()
        pause = min(PUT_OFF_FIRST * 2 ** min(kept.tries, 10), PUT_OFF_MAX, lease / 3)
        self.shelf.hold_back(WHY_HELD_BACK, TRY_ONE_AFTER)
        self._at_work += 1
        asyncio.get_running_loop().call_later(pause, self._send_again, hand, outcome)

    def _send_again(self, hand: Hand, outcome: Outcome | LeaseLost) -> None:
        self._at_work -= 1
        kept = self.unrecorded.get(hand)
        if kept is not None and kept.unanswered:
            self._take_singly(hand, outcome, tries=1)
        elif isinstance(outcome, LeaseLost):
            self._take_singly(hand, outcome)
        else:
            self.take(hand, outcome)

    def _recorded(self, hands: Iterable[Hand]) -> None:
        """The database takes outcomes; if it did not before, that is over."""
        if self.unrecorded:
            for hand in hands:
                self.unrecorded.pop(hand, None)
        self.shelf.hold_back_no_more(WHY_HELD_BACK)

    def _got_through(self, batch: list[Hand], answers: list[Answer]) -> list[Hand]:
        """Those whose lease has ended by this call; who is busy comes again in a later batch."""
        told = {(answer.job_id, answer.token): answer for answer in answers}
        ended = []
        for hand in batch:
            answer = told.get((hand.job_id, hand.token))
            if answer is not None and answer.answer == "busy":
                self._wait_for_row(hand)
                continue
            if answer is not None and answer.answer == "alone":  # a server's word: not with the others
                assert hand.outcome is not None
                self._take_singly(hand, hand.outcome, tries=1 if answer.reason == "unknown" else 0)
                continue
            if answer is not None:
                self._say_refused(hand, answer.reason or "gone", answer.current_token)
            ended.append(hand)
        return ended

    def _wait_for_row(self, hand: Hand) -> None:
        self._at_work += 1
        pause = min(BUSY_PAUSE * 2**hand.met_busy, BUSY_PAUSE_MAX)
        hand.met_busy = min(hand.met_busy + 1, 10)
        asyncio.get_running_loop().call_later(pause, self._try_again, hand)

    def _try_again(self, hand: Hand) -> None:
        self._at_work -= 1
        self.take(hand, hand.outcome)

    async def _settle_one(self, hand: Hand, outcome: Outcome | LeaseLost, tries: int) -> None:
        """Record one outcome; whoever settles for the others has to outlive whatever comes of it."""
        try:
            async with asyncio.timeout(min(ONE_WAIT * 2**tries, ONE_WAIT_MAX)):
                await self._say(hand, outcome, tries)
        except TimeoutError:
            self._take_singly(hand, outcome, tries + 1)
            return
        except OutcomeUnknown as unknown:
            hand.ended_as = "unknown"
            log.error("%s", unknown)
        except Exception as error:
            if isinstance(outcome, Outcome) and await self._is_the_handlers(outcome, error):
                self._take_singly(hand, Failed(describe_error(error)))
                return
            if not await self._is_hopeless(hand, outcome, error):
                self._put_off(hand, outcome, error)
                return
            hand.ended_as = "unsettled"
            log.exception("job %d could not be settled; its lease runs out, and others try it", hand.job.id)
        self._recorded([hand])
        self.shelf.drop(hand)

    async def _is_the_handlers(self, outcome: Outcome, error: Exception) -> bool:
        """Whether it is refused for what the handler gave.

        A trigger, or the row itself, may answer alike: then it is not refused of a lease that nobody has.
        """
        if not is_the_handlers(outcome, error) or is_of_a_bound(error):
            return is_the_handlers(outcome, error)
        try:
            await self.single_line.run(settle(nobodys(), outcome))
        except Exception as again:
            return is_the_handlers(outcome, again)
        return False

    async def _is_hopeless(self, hand: Hand, outcome: Outcome | LeaseLost, error: Exception) -> bool:
        """Whether it is this job alone that cannot be settled, for a lease by now.

        A pacemaker that went on beating would keep it from all others. What every call meets is waited out.
        """
        kept = self.unrecorded.get(hand)
        if not can_be_mended(error):
            return True
        if kept is None or is_of_all(error) or time.monotonic() - kept.since < hand.lease_for:
            return False
        if isinstance(outcome, LeaseLost):
            return True  # there is no lease to keep; the refusal itself stands
        try:
            await self.single_line.run(settle(nobodys(), outcome))
        except LeaseLost:
            return True  # the verb works, and refuses what it should
        except Exception:
            return False
        return False

    async def _say(self, hand: Hand, outcome: Outcome | LeaseLost, tries: int) -> None:
        """Send one outcome.

        After a break in the middle, rows tell whether it was recorded, before it is sent again.
        """
        if isinstance(outcome, LeaseLost):
            await self._record_refusal(hand, outcome)
            return
        unanswered, began = tries > 0, 0 if tracing.tracer is None else time.time_ns()

        async def say() -> None:
            nonlocal unanswered
            if unanswered and await self._is_told(hand, outcome):
                return
            unanswered = False
            reach("release.sending" if isinstance(outcome, Released) else "settle_one.sending")
            final = await self._reconsidered(hand, outcome)
            call, unanswered = settle(hand.lease, final), True
            try:
                hand.ended_as = ended_as(final, await self.single_line.run(call))
            except Exception as error:
                # Any other says that it was not recorded, except a server's word for what only its log tells.
                unanswered = isinstance(error, OUTAGE) or type(error) is FaultlineError
                raise

        try:
            await self.outage.outlast(say)
            if isinstance(outcome, Crashed):
                self._tell_crashed(hand, outcome)
            if tracing.tracer is not None:
                tracing.settled([hand.span], began)
            reach("release.sent" if isinstance(outcome, Released) else "settled")
        except LeaseLost as lost:
            await self._record_refusal(hand, lost)
        except Exception:
            if unanswered:
                self.unrecorded.setdefault(hand, Unrecorded(time.monotonic())).unanswered = True
            raise

    def _tell_crashed(self, hand: Hand, crashed: Crashed) -> None:
        """As other failures are told; whether the job died of it stood in the answer."""
        job, dead = hand.job, hand.ended_as == "dead"
        tell("job_crashed", queue=job.queue, task=job.task, signature=crashed.signature)
        error, _, frames = crashed.error.partition("\n")
        if dead and job.attempt < job.max_attempts:
            times, last = crashed.max_crashes, crashed.signature
            error = f"out of crashes: crashed alone {times} times, at last by {last}: {error}"
        emit(
            "execution_finished", logging.ERROR if dead else logging.WARNING, job_id=job.id, token=job.token,
            worker=self.worker, task=job.task, attempt=job.attempt, outcome="Crashed",
            max_attempts=job.max_attempts, state="dead" if dead else "queued", error=error,
            **({"frames": frames} if frames else {}),
        )  # fmt: skip

    async def _reconsidered(self, hand: Hand, outcome: Outcome) -> Outcome:
        """A job that nobody has known for a day is not left for others any more."""
        if hand.spec is None and isinstance(outcome, Snooze):
            info = await self.single_line.run(calls.outline(hand.job.id))
            history = await self.single_line.run(calls.history(hand.job.id))
            if info and info.claimed_at and unknown_for_long(history, info.claimed_at):
                log.error("job %d is dead: no worker knew the task %s for a day", hand.job.id, hand.job.task)
                return Dead(f"no worker knew the task {hand.job.task} for a day")
            if await self.single_line.run(calls.others_serve(hand.job.queue, self.worker)):
                # At once, and not to us again: they may know it, and it has waited long enough.
                pause = NO_PAUSE if self.shelf.unfit.leave(hand.job.task) else outcome.delay
                return Snooze(pause, outcome.reason)
        return outcome

    async def _is_told(self, hand: Hand, outcome: Outcome) -> bool:
        """Ask the rows about a settling whose reply was lost: True when there is nothing more to send."""
        entry = await self.single_line.run(calls.outcome(hand.lease))
        emit(
            "commit_resolved", logging.DEBUG, job_id=hand.job.id, token=hand.job.token, task=hand.job.task,
            answer=entry,
        )  # fmt: skip
        if entry == "gone":
            raise OutcomeUnknown(f"job {hand.job.id}: the reply to its settling was lost, and {NO_ROW_TELLS}")
        if is_recorded(outcome, entry):
            hand.ended_as = ended_as(outcome, entry)
            return True
        # Any other entry was made by somebody else: sending it again has the fence say so, with its facts.
        return False

    async def _record_refusal(self, hand: Hand, lost: LeaseLost) -> None:
        if hand.settled or (lost.reason == "settled" and await self._committed(hand)):
            return  # its own transaction was first, while we spoke for a handler that was to stop
        reason, current_token = await self.outage.outlast(
            lambda: self.single_line.run(calls.refused(hand.lease, self.worker))
        )
        self._say_refused(hand, reason, current_token)

    async def _committed(self, hand: Hand) -> bool:
        entry = await self.outage.outlast(lambda: self.single_line.run(calls.outcome(hand.lease)))
        return entry == "succeeded"

    def _say_refused(self, hand: Hand, reason: str, current_token: int | None) -> None:
        hand.job._lose()
        hand.ended_as = "refused"
        emit(
            "stale_write_blocked", logging.WARNING, job_id=hand.job.id, token=hand.job.token,
            worker=self.worker, task=hand.job.task, queue=hand.job.queue, stale_token=hand.job.token,
            current_token=current_token, reason=reason,
        )  # fmt: skip
        self.shelf.figures.refused(hand, reason)
        tracing.refused(hand.job, hand.span, reason, current_token)
