"""The runners: long-lived coroutines that take a job, run its handler, and hand the outcome on.

No task a job and no timer a job: at tens of thousands of jobs a second those would cost more than the jobs.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any

from faultline.errors import LeaseLost
from faultline.failpoints import reach
from faultline.outcome import Crashed, Dead, Done, Failed, Outcome
from faultline.task import TaskSpec
from faultline.telemetry import current, emit, tracing
from faultline.telemetry.events import Budget, counted, hears
from faultline.worker.children import Children
from faultline.worker.ending import described, raised, returned
from faultline.worker.hand import Hand
from faultline.worker.judge import after_stop, unknown_task
from faultline.worker.settler import Settler
from faultline.worker.shelf import Shelf
from faultline.worker.suspects import Suspects
from faultline.worker.threads import Threads

log = logging.getLogger("faultline.worker")

YIELD_EVERY = 8
"""Handlers that never wait would keep the loop from everything else."""

TURN_MAX = 0.01
"""The same for those that are slow without waiting: seconds after which the others get a turn."""


FRAMES_A_SECOND = 20
"""Failures told with their frames; past these a line each, since all of them stand in the ledger anyway."""


class Runners:
    """N coroutines over one shelf; plain handlers run in threads, those that ask for it in children."""

    def __init__(
        self, shelf: Shelf, settler: Settler, worker: int, children: Children, suspects: Suspects
    ) -> None:
        self.shelf = shelf
        self.settler = settler
        self.worker = worker
        self.children = children
        self.suspects = suspects
        self.threads = Threads(shelf.config.threads_max)
        self._away: dict[Hand, asyncio.Event] = {}
        self._frames_told = Budget(FRAMES_A_SECOND)
        self._clean = copy_context()

    async def run(self) -> None:
        """Take and run jobs until cancelled.

        A handler that leaves something in its context would leave it to the next one; then another runner
        takes over, with a clean context: as good as a task a job, and free while nobody does it.
        """
        while True:
            await asyncio.create_task(self._run_on(), context=self._clean.copy())

    async def _run_on(self) -> None:
        """Run jobs until one leaves something behind in this context."""
        me = asyncio.current_task()
        assert me is not None
        shelf, done, turned_at, spoiled = self.shelf, 0, 0.0, False
        told = hears(logging.DEBUG)  # asked once a turn: to ask for each job cost a thirtieth of it
        while not spoiled:
            if shelf.buffer and shelf.buffer[0].stopping is None:
                hand = shelf.buffer.popleft()
            else:
                hand = await self._next()
                told = hears(logging.DEBUG)
            hand.runner = me
            shelf.running.add(hand)
            current.set(hand.job)  # until the next, or until there is none: set back each time, it cost twice
            before = copy_context()
            try:
                outcome = await (self._attempt if tracing.tracer is None else self._traced)(hand, told)
            finally:
                shelf.running.discard(hand)
                hand.runner = None
            spoiled = copy_context() != before
            if hand.told:
                _forget_cancelling(me)
            shelf.finished_count += 1
            self.settler.take(hand, outcome)
            if hand.abandoned:
                shelf.ask_for_more()
                await self._until_back(hand)
            done += 1
            if done % YIELD_EVERY == 0 or time.monotonic() - turned_at > TURN_MAX:
                shelf.ask_for_more()
                await asyncio.sleep(0)
                turned_at, told = time.monotonic(), hears(logging.DEBUG)

    async def _next(self) -> Hand:
        """The next job that may be started; those told to stop before they began are settled here."""
        shelf = self.shelf
        current.set(None)
        while True:
            while not shelf.buffer:
                shelf.hungry.set()
                await shelf.until_filled()
            hand = shelf.buffer.popleft()
            if hand.stopping is None:
                return hand
            self.settler.take(hand, after_stop(hand))

    async def _attempt(self, hand: Hand, told: bool) -> Outcome | LeaseLost | None:
        """Run one handler; whatever happens becomes an outcome, or None when there is nothing left to say.

        `told`: somebody hears of each job.
        """
        spec = hand.spec
        if spec is None:
            unknown = unknown_task(hand)
            self.shelf.unfit.look(hand, unknown)
            return unknown
        if told:
            emit("execution_started", logging.DEBUG, **self._facts(hand))
        began_at = time.monotonic() if counted() else None
        try:
            reach("started")
            if spec.run == "process":
                outcome = await self.children.run(hand)
            elif hand.job.crashes and self.suspects.take(spec):
                outcome = await self.suspects.run(hand)
            else:
                # Decoded here, inside this job's own try: a bad row harms only itself.
                kwargs = spec.codec.decode(hand.args)
                if not spec.is_async:
                    outcome = await self._call_in_thread(hand, spec, kwargs)
                elif spec.takes_job:
                    outcome = returned(hand, await spec.handler(hand.job, **kwargs))
                else:
                    outcome = returned(hand, await spec.handler(**kwargs))
        except asyncio.CancelledError as error:
            if hand.told:
                outcome = after_stop(hand)
            elif asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise  # the worker itself is being cancelled
            else:
                outcome = raised(hand, error)  # the handler's own, from a task it cancelled
        except GeneratorExit:
            raise
        except BaseException as error:  # a handler that calls sys.exit() has failed; the worker has not
            outcome = raised(hand, error)
        if began_at is not None:
            hand.ran_for = time.monotonic() - began_at
        if told or type(outcome) is not Done:
            self.shelf.unfit.look(hand, outcome)
            self._tell(hand, outcome)
        return None if hand.settled else outcome

    async def _traced(self, hand: Hand, told: bool) -> Outcome | LeaseLost | None:
        """The same inside a span, which is the current one while the handler runs."""
        hand.span = span = tracing.processing(hand.job, hand.trace)
        how: tuple[str, str | None] = ("stopped", None)
        try:
            outcome = await self._attempt(hand, told)
            how = described(hand, outcome)
            return outcome
        finally:
            if span is not None:
                tracing.quietly(span.end, *how)

    async def _call_in_thread(
        self, hand: Hand, spec: TaskSpec, kwargs: dict[str, Any]
    ) -> Outcome | LeaseLost | None:
        context = copy_context()
        args = (hand.job,) if spec.takes_job else ()
        thread = self.threads.submit(lambda: _caught(context, spec.handler, args, kwargs))
        try:
            value, error = await asyncio.wrap_future(thread)
        except asyncio.CancelledError:
            if not thread.cancel():
                self._abandon(hand, thread)
            raise
        if isinstance(error, StopIteration):  # Python makes another error of one that leaves a coroutine
            return raised(hand, error)
        if error is not None:
            raise error
        return returned(hand, value)

    def _abandon(self, hand: Hand, thread: "Future[Any]") -> None:
        """A thread cannot be stopped.

        Its slot is lost until it ends, and no other attempt of its job starts here.
        """
        hand.abandoned = True
        self.shelf.abandon(hand)
        self._away[hand] = asyncio.Event()
        if not thread.done() and hand.stopping != "not_renewed":
            log.warning(
                "the thread of job %d (%s) goes on after its lease ended (%s); its writes are fenced, its "
                "slot is lost until it returns: look at job.lost between its steps",
                hand.job.id, hand.job.task, hand.stopping,
            )  # fmt: skip
        loop = asyncio.get_running_loop()

        def ended(thread: "Future[Any]") -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before the thread
                loop.call_soon_threadsafe(self._came_back, hand)

        thread.add_done_callback(ended)

    async def _until_back(self, hand: Hand) -> None:
        """The thread has not ended, so neither has this runner's turn: never more at once than `jobs_max`."""
        if back := self._away.get(hand):
            await back.wait()

    def _came_back(self, hand: Hand) -> None:
        self.shelf.came_back(hand)
        self._away.pop(hand).set()
        if hand.lost is not None and hand.lost.reason != "not_renewed":
            self.settler.take_late(hand, hand.lost)

    def _tell(self, hand: Hand, outcome: Outcome | LeaseLost | None) -> None:
        """The attempt has ended: a failure is a warning, the one that the job dies of an error.

        Of a crash the database decides whether the job dies: the settler tells it, once it is recorded.
        """
        facts = self._facts(hand) | {"outcome": "Settled" if hand.settled else type(outcome).__name__}
        if isinstance(outcome, Crashed) and not hand.settled:
            return
        if isinstance(outcome, Failed | Dead) and not hand.settled:
            self._tell_failed(hand, outcome, facts)
        elif hears(logging.DEBUG):
            emit("execution_finished", logging.DEBUG, **facts)

    def _tell_failed(self, hand: Hand, outcome: Failed | Dead, facts: dict[str, Any]) -> None:
        dies = isinstance(outcome, Dead) or hand.job.attempt >= hand.job.max_attempts
        level = logging.ERROR if dies else logging.WARNING
        if not hears(level) and not counted():
            return
        facts["max_attempts"] = hand.job.max_attempts
        facts["state"] = "dead" if dies else "queued"
        error = str(outcome.reason if isinstance(outcome, Dead) else outcome.error)
        facts["error"], _, frames = error.partition("\n")
        if frames and self._frames_told.may():
            facts["frames"] = frames
        emit("execution_finished", level, **facts)

    def _facts(self, hand: Hand) -> dict[str, Any]:
        job = hand.job
        return {
            "job_id": job.id, "token": job.token, "worker": self.worker, "task": job.task,
            "attempt": job.attempt,
        }  # fmt: skip


def _caught(
    context: Context, handler: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    """Run a handler in a thread.

    What it raises is handed over as a value: a future cannot carry StopIteration.
    """
    try:
        return context.run(handler, *args, **kwargs), None
    except BaseException as error:
        return None, error


def _forget_cancelling(me: "asyncio.Task[Any]") -> None:
    """The cancellation was for the job: left standing, it would confuse the next one's task groups."""
    if me.uncancel() > 0:
        raise asyncio.CancelledError  # and another was for us
