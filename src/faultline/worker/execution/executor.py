"""The executor: long-lived coroutines that take a job, run its handler, and hand the outcome on.

No task a job and no timer a job: at tens of thousands of jobs a second those would cost more than the jobs.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from datetime import timedelta
from typing import Any, Final

from faultline.errors import LeaseLost
from faultline.failpoints import failpoint
from faultline.outcome import Done, Outcome, Unserved
from faultline.task import TaskSpec
from faultline.telemetry import current, tracing
from faultline.telemetry.events import has_listeners, is_logging
from faultline.worker.attempt import COMMITTED, OUT_OF_TIME, Attempt, HandlerState, StopReason
from faultline.worker.execution.attempt_log import AttemptLog, described
from faultline.worker.execution.batches import Batches
from faultline.worker.execution.deadlines import TOLD_AFTER
from faultline.worker.execution.outcomes import after_stop, raised, returned
from faultline.worker.execution.threads import Threads
from faultline.worker.handlers.handler_calls import HandlerCalls, is_direct
from faultline.worker.processes.child_pool import ChildPool
from faultline.worker.processes.suspects import Suspects
from faultline.worker.settlement.settler import Settler
from faultline.worker.state import WorkerState

log = logging.getLogger("faultline.worker")

HERE: Final = HandlerState.HERE

LATE_AFTER: Final = 0.25
"""Seconds since its claim was sent after which a job is looked at before its handler begins."""

UNKNOWN_TASK_PAUSE = timedelta(seconds=15)
"""How long a job waits that no worker of its queue can run."""

YIELD_EVERY = 8
"""Handlers that never wait would keep the loop from everything else."""

TURN_MAX = 0.01
"""The same for those that are slow without waiting: seconds after which the others get a turn."""


class Executor:
    """N coroutines over one buffer; plain handlers run in threads, those that ask for it in children."""

    def __init__(
        self,
        state: WorkerState,
        settler: Settler,
        worker: int,
        children: ChildPool,
        suspects: Suspects,
        calls: HandlerCalls,
    ) -> None:
        self.state = state
        self.settler = settler
        self.worker = worker
        self.children = children
        self.suspects = suspects
        self.calls = calls
        self.threads = Threads(state.config.threads_max)
        self.batches = Batches(state, self.threads)
        self._members: set[asyncio.Task[None]] = set()
        self._away: dict[Attempt, asyncio.Event] = {}
        self._log = AttemptLog(worker)
        self._clean = copy_context()

    async def run(self) -> None:
        """Take and run jobs until cancelled.

        A handler that leaves something in its context would leave it to the next one; then another runner
        takes over, with a clean context: as good as a task a job, and free as long as no handler does it.
        """
        while True:
            await asyncio.create_task(self._run_on(), context=self._clean.copy())

    async def _run_on(self) -> None:
        """Run jobs until one leaves something behind in this context."""
        me = asyncio.current_task()
        assert me is not None
        state, done, turned_at, spoiled, now = self.state, 0, 0.0, False, time.monotonic()
        told = is_logging(logging.DEBUG)  # asked once a turn: to ask for each job cost a thirtieth of it
        while not spoiled:
            if (
                state.buffer
                and (first := state.buffer[0]).stopping is None
                and now - first.taken_at < LATE_AFTER
            ):
                attempt = state.buffer.popleft()
            else:
                attempt = await self._next()
                told = is_logging(logging.DEBUG)
            spec = attempt.spec
            if spec is not None and spec.batch is not None:
                await self.batches.take(attempt, self._start_member, self._may_begin)
                turned_at, now = 0.0, time.monotonic()
                continue
            attempt.runner = me
            state.running.add(attempt)
            job = attempt.job
            job._attempt = attempt
            current.set(job)  # until the next, or until there is none: set back each time, it cost twice
            before = copy_context()
            try:
                outcome = await (self._attempt if tracing.tracer is None else self._traced)(attempt, told)
            finally:
                state.running.discard(attempt)
                attempt.runner = job._attempt = None
            spoiled = copy_context() != before
            if attempt.told_at is not None:
                _forget_cancelling(me)
            state.finished_count += 1
            if attempt.handler is not HERE:
                await self._after_another(attempt, outcome)
            else:
                self.settler.take(attempt, outcome)
            done += 1
            now = time.monotonic()
            if done % YIELD_EVERY == 0 or now - turned_at > TURN_MAX:
                state.ask_for_more()
                await asyncio.sleep(0)
                turned_at = now = time.monotonic()
                told = is_logging(logging.DEBUG)

    def _may_begin(self, attempt: Attempt) -> bool:
        """Whether a job of the buffer may be started; one that may not is settled here."""
        now = time.monotonic()
        if attempt.stopping is None and now - attempt.taken_at >= LATE_AFTER:
            attempt.stopping = attempt.reason_not_to_begin(self.state.lease_table, now)
        if attempt.stopping is None:
            return True
        self.settler.take(attempt, after_stop(attempt))
        return False

    def _start_member(self, attempt: Attempt) -> None:
        """A job of a batch, in a task of its own: it is stopped, times out and is settled by itself."""
        member = asyncio.create_task(self._member(attempt), context=self._clean.copy())
        attempt.runner = member
        self.state.running.add(attempt)
        self.state.batched += 1
        attempt.job._attempt = attempt
        self._members.add(member)
        member.add_done_callback(self._members.discard)

    async def _member(self, attempt: Attempt) -> None:
        current.set(attempt.job)
        told, state = is_logging(logging.DEBUG), self.state
        try:
            outcome = await (self._attempt if tracing.tracer is None else self._traced)(attempt, told)
        finally:
            self.batches.left(attempt)
            state.running.discard(attempt)
            state.batched -= 1
            attempt.runner = attempt.job._attempt = None
        state.finished_count += 1
        self.settler.take(attempt, outcome)

    async def _batched(self, attempt: Attempt, spec: TaskSpec) -> Outcome | LeaseLost | None:
        """The share of one job in the call for its batch."""
        assert spec.batch_args is not None
        args = spec.batch_args(**spec.codec.decode(attempt.args))
        share = await self.batches.share(attempt, args)
        if share.error is not None:
            return raised(attempt, share.error)
        return returned(attempt, share.value)

    async def _after_another(self, attempt: Attempt, outcome: Outcome | LeaseLost | None) -> None:
        """The end of a handler that ran in a child, or did not stop when it was told to."""
        if attempt.handler is HandlerState.GIVEN_UP:
            self._came_to_its_end(attempt)
        else:
            self.settler.take(attempt, outcome)
        if attempt.handler is HandlerState.ABANDONED:
            self.state.ask_for_more()
            await self._until_back(attempt)

    async def _next(self) -> Attempt:
        """The next job that may be started; those told to stop before they began are settled here."""
        state = self.state
        current.set(None)
        while True:
            while not state.buffer:
                state.hungry.set()
                await state.until_filled()
            attempt = state.buffer.popleft()
            if attempt.stopping is None:
                now = time.monotonic()
                if now - attempt.taken_at >= LATE_AFTER:
                    attempt.stopping = attempt.reason_not_to_begin(state.lease_table, now)
            if attempt.stopping is None:
                return attempt
            self.settler.take(attempt, after_stop(attempt))

    async def _attempt(self, attempt: Attempt, told: bool) -> Outcome | LeaseLost | None:
        """Run one handler; whatever happens becomes an outcome, or None when there is nothing left to say.

        `told`: each job is logged.
        """
        spec = attempt.spec
        if spec is None:
            self.state.unfit.tell_unknown(attempt)
            return Unserved(UNKNOWN_TASK_PAUSE)
        if told:
            self._log.started(attempt)
        began_at = time.monotonic() if has_listeners() else None
        try:
            failpoint("started")
            if spec.batch is not None:
                outcome = await self._batched(attempt, spec)
            elif spec.run == "process":
                attempt.handler, attempt.is_excused = HandlerState.IN_CHILD, True
                outcome = await self.children.run(attempt)
            elif attempt.job.crashes and self.suspects.take(spec):
                attempt.handler, attempt.is_excused = HandlerState.IN_CHILD, True
                outcome = await self.suspects.run(attempt)
            else:
                # Decoded here, inside this job's own try: a bad row harms only itself.
                kwargs = spec.codec.decode(attempt.args)
                if not spec.is_async:
                    outcome = await self._call_in_thread(attempt, spec, kwargs)
                elif spec.injection is not None or spec.around:
                    outcome = returned(attempt, await self.calls.acall(attempt.job, spec, kwargs))
                elif spec.takes_job:
                    outcome = returned(attempt, await spec.handler(attempt.job, **kwargs))
                else:
                    outcome = returned(attempt, await spec.handler(**kwargs))
        except asyncio.CancelledError as error:
            if attempt.told_at is not None:
                outcome = after_stop(attempt)
            elif asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise  # the worker itself is being cancelled
            else:
                outcome = raised(attempt, error)  # the handler's own, from a task it cancelled
        except GeneratorExit:
            raise
        except BaseException as error:  # a handler that calls sys.exit() has failed; the worker has not
            outcome = raised(attempt, error)
        if began_at is not None:
            attempt.ran_for = time.monotonic() - began_at
        if told or type(outcome) is not Done:
            self.state.unfit.look(attempt, outcome)
            if attempt.handler is not HandlerState.GIVEN_UP:
                self._log.finished(attempt, outcome)
        return None if attempt.phase is COMMITTED else outcome

    async def _traced(self, attempt: Attempt, told: bool) -> Outcome | LeaseLost | None:
        """The same inside a span, which is the current one while the handler runs."""
        attempt.span = span = tracing.processing(attempt.job, attempt.trace)
        how: tuple[str, str | None] = ("stopped", None)
        try:
            outcome = await self._attempt(attempt, told)
            how = described(attempt, outcome)
            return outcome
        finally:
            if span is not None:
                tracing.quietly(span.end, *how)

    async def _call_in_thread(
        self, attempt: Attempt, spec: TaskSpec, kwargs: dict[str, Any]
    ) -> Outcome | LeaseLost | None:
        context = copy_context()
        args: tuple[Any, ...] = (attempt.job,) if spec.takes_job else ()
        handler = spec.handler
        if not is_direct(spec):
            handler, args, kwargs = self.calls.call, (attempt.job, spec, kwargs), {}

        def run() -> tuple[Any, BaseException | None]:
            attempt.is_excused = False
            return _caught(context, handler, args, kwargs)

        attempt.is_excused = True
        thread = self.threads.submit(run)
        try:
            value, error = await asyncio.wrap_future(thread)
        except asyncio.CancelledError:
            if attempt.stopping in OUT_OF_TIME and thread.done() and not thread.cancelled():
                value, error = thread.result()  # it returned while a blocked loop could not hear of it
            else:
                if not thread.cancel():
                    self._abandon(attempt, thread)
                raise
        if isinstance(error, StopIteration):  # Python makes another error of one that leaves a coroutine
            return raised(attempt, error)
        if error is not None:
            raise error
        return returned(attempt, value)

    def _abandon(self, attempt: Attempt, thread: "Future[Any]") -> None:
        """A thread cannot be stopped.

        Its slot is lost until it ends, and no other attempt of its job starts here.
        """
        attempt.handler = HandlerState.ABANDONED
        self.state.abandon(attempt)
        self._away[attempt] = asyncio.Event()
        loop = asyncio.get_running_loop()
        if attempt.stopping is StopReason.LEAVING:
            self._tell_goes_on(attempt, thread)  # the loop may end before a later moment
        elif attempt.stopping is not StopReason.NOT_RENEWED:
            loop.call_later(TOLD_AFTER, self._tell_goes_on, attempt, thread)

        def ended(thread: "Future[Any]") -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before the thread
                loop.call_soon_threadsafe(self._came_back, attempt)

        thread.add_done_callback(ended)

    def _tell_goes_on(self, attempt: Attempt, thread: "Future[Any]") -> None:
        if not thread.done():
            log.warning(
                "the thread of job %d (%s) goes on after its lease ended (%s); its writes are fenced, its "
                "slot is lost until it returns: look at job.lost between its steps",
                attempt.job.id, attempt.job.task, attempt.stopping,
            )  # fmt: skip

    async def _until_back(self, attempt: Attempt) -> None:
        """The thread has not ended, so neither has this runner's turn: never more at once than `jobs_max`."""
        if back := self._away.get(attempt):
            await back.wait()

    def give_up(self, attempt: Attempt) -> None:
        """A coroutine goes on past its timeout: its attempt is settled, its runner is lost until it ends."""
        attempt.handler = HandlerState.GIVEN_UP
        self.state.give_up(attempt)
        outcome = None if attempt.phase is COMMITTED else after_stop(attempt)
        self._log.finished(attempt, outcome)
        self.settler.take(attempt, outcome)

    def _came_back(self, attempt: Attempt) -> None:
        self._away.pop(attempt).set()
        self._came_to_its_end(attempt)

    def _came_to_its_end(self, attempt: Attempt) -> None:
        """A handler that was not waited for has returned; if its late write was refused, that is recorded."""
        self.state.came_back(attempt)
        if attempt.lost is not None and attempt.lost.reason != "not_renewed":
            self.settler.take_late(attempt, attempt.lost)


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
